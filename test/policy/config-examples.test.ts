// The files under config/ are part of the product: the examples are accepted without a warning, the schema is current.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../src/policy/compile.ts';
import type { Decision } from '../../src/policy/policy.ts';
import { parseProxyConfig, proxyConfigJsonSchema } from '../../src/policy/document/proxy-config.ts';

const folder = new URL('../../config/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
const examples = readdirSync(folder).filter((file) => /^proxy-config\.(?!schema\.)[a-z]+\.json$/.test(file));

describe('the examples', () => {
  it('are there', () => expect(examples.length).toBeGreaterThanOrEqual(4));

  it.each(examples)('%s is accepted and compiles', (file) => {
    const parsed = parseProxyConfig(read(file));
    expect(parsed).toMatchObject({ ok: true, warnings: [] });
    if (parsed.ok)
      expect(compileProxyConfig(parsed.value, () => new Secret('x'), 1)).toMatchObject({ ok: true });
  });

  const demo: readonly [authority: string, target: string, decision: object][] = [
    ['api.localhost:9443', '/v1/hello', { apply: 'rule' }],
    ['shop.example.localhost:9443', '/v1/hello', { apply: 'rule' }],
    ['api.localhost:9443', '/', { apply: 'none' }],
    ['callback.localhost:9443', '/', { apply: 'callback' }],
    ['direct.localhost:9443', '/', { kind: 'tunnel', reason: 'no_proxy' }],
    ['other.localhost:9443', '/', { kind: 'tunnel', reason: 'no_match' }],
  ];
  it.each(demo)('the one for a first try: %s %s', (text, target, decision) => {
    expect(decideByDemo(text, target)).toMatchObject(decision);
  });
});

function decideByDemo(text: string, target: string): Decision {
  const parsed = parseProxyConfig(read('proxy-config.example.json'));
  const authority = parseAuthority(text);
  if (!parsed.ok || typeof authority === 'string') throw new Error(text);
  const compiled = compileProxyConfig(
    parsed.value,
    (name) => (name === 'DEMO_TOKEN' ? new Secret('demo') : undefined),
    1,
  );
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value.decide(authority, target);
}

describe('the JSON Schema', () => {
  it('is current; `node scripts/generate-schema.ts` writes it', () => {
    const text = readFileSync(new URL('proxy-config.schema.json', folder), 'utf8');
    expect(text).toBe(`${JSON.stringify(proxyConfigJsonSchema(), null, 2)}\n`);
  });
  it('forbids unknown keys and names the types of headers', () => {
    const text = JSON.stringify(proxyConfigJsonSchema());
    expect(text).toContain('"additionalProperties":false');
    for (const type of ['workspace_secret', 'plaintext', 'opaque'])
      expect(text).toContain(`"const":"${type}"`);
  });
  it('requires the value of an opaque header, which only an update may omit', () => {
    const text = JSON.stringify(proxyConfigJsonSchema());
    const opaque = /"const":"opaque".*?"required":(\[[^\]]*\])/g;
    expect([...text.matchAll(opaque)].map(([, required]) => required)).toEqual(
      Array.from({ length: 2 }, () => '["name","type","value"]'),
    );
  });
});

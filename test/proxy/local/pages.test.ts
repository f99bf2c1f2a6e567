import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { Policy } from '../../../src/policy/policy.ts';
import { type Page, pageAt } from '../../../src/proxy/local/pages.ts';
import { createReservedHost } from '../../../src/proxy/local/reserved-host.ts';

const secret = 'sesame-open-now';
const certificates = { caPem: 'CA\n', bundle: [Buffer.from('CA\nROOT\n')], fingerprint: 'ab'.repeat(32) };

function policyOf(document: unknown): Policy {
  const parsed = parseProxyConfig(document);
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => new Secret(secret), 7) : parsed;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

function page(path: string, document: unknown = {}): Page | undefined {
  const reserved = createReservedHost({ name: 'sallyport.internal', certificates });
  return pageAt(path, { sandbox: 'box', policy: policyOf(document), reserved });
}

function textOf(shown: Page | undefined): string {
  return Buffer.concat(shown?.body ?? []).toString();
}

const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];

it('the status names hosts, rules and headers, and no value', () => {
  const document = {
    rules: [
      { name: 'api', match_hosts: ['api.test', '*.api.test:8443'], match_paths: ['/v1/*'], headers },
      { match_hosts: ['off.test'], enabled: false, headers },
    ],
    callbacks: [
      { name: 'cb', match_hosts: ['cb.test'], url: 'https://token.test/x?hidden=1', ttl_seconds: 60 },
    ],
  };
  const body = textOf(page('/status', document));
  expect(JSON.parse(body)).toEqual({
    sandbox: 'box',
    revision: 7,
    hosts: [
      {
        rule: 'api',
        match_hosts: ['api.test', '*.api.test:8443'],
        match_paths: ['/v1/*'],
        headers: ['Authorization'],
      },
      { callback: 'cb', match_hosts: ['cb.test'] },
    ],
    refusals: [],
  });
  expect(body).not.toMatch(/sesame|Bearer|hidden|token\.test/);
});

it('the status of many rules is bounded, and says so', () => {
  const rules = Array.from({ length: 250 }, (_, i) => ({ match_hosts: [`h${i}.test`], headers }));
  const shown = JSON.parse(textOf(page('/status', { rules })));
  expect([shown.hosts.length, shown.more_hosts]).toEqual([200, 50]);
});

it('the script and the status of a policy are made once, so that a client that asks often costs nothing', () => {
  const reserved = createReservedHost({ name: 'sallyport.internal', certificates });
  const policy = policyOf({
    rules: [{ match_hosts: ['a.test'], headers, env_vars: { KEY: 'placeholder' } }],
  });
  const parts = (path: string, sandbox: string): readonly Buffer[] =>
    pageAt(path, { sandbox, policy, reserved })?.body ?? [];
  expect(parts('/env', 'a')[0]).toBe(parts('/env', 'b')[0]);
  const [first, second] = [parts('/status', 'a'), parts('/status', 'b')];
  expect(first[1]).toBe(second[1]);
  expect(JSON.parse(Buffer.concat(second).toString())).toMatchObject({ sandbox: 'b', hosts: [{}] });
});

it('the script of many variables is bounded, and says so', () => {
  const variables = (from: number, value: string): Record<string, string> =>
    Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`V${from + i}`, value]));
  const rulesWith = (value: string): unknown => ({
    rules: Array.from({ length: 100 }, (_, r) => ({
      match_hosts: [`h${r}.test`],
      headers,
      env_vars: variables(100 * r, value),
    })),
  });
  const many = textOf(page('/env', rulesWith('x')));
  expect(many.match(/^export V/gm)).toHaveLength(500);
  expect(many).toContain('9500 env_vars of the rules are left out');
  // Each quote is four characters in the script.
  expect(textOf(page('/env', rulesWith("'".repeat(70)))).length).toBeLessThan(300_000);
});

it.each([
  ['/', 'text/plain; charset=utf-8', /^This is Sallyport/],
  ['/?x', 'text/plain; charset=utf-8', /^This is Sallyport/],
  ['/env', 'text/plain; charset=utf-8', /SSL_CERT_FILE/],
  ['/ca.pem', 'application/x-pem-file', /^CA\n$/],
  ['/ca-bundle.pem?x', 'application/x-pem-file', /^CA\nROOT\n$/],
])('%s is %s', (path, type, body) => {
  expect(page(path)?.type).toBe(type);
  expect(textOf(page(path))).toMatch(body);
});

it.each(['/x', '/status/', '//', '/ca.key', '*'])('%s does not exist', (path) => {
  expect(page(path)).toBeUndefined();
});

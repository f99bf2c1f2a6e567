// Fuzz target: a document is validated without a throw; what is accepted compiles, is written back as it was read, and decides;
// an issue names a location that exists and quotes no opaque value. Input: the document.
import assert from 'node:assert/strict';
import { parseJsonDocument } from '../../../src/base/json/json-document.ts';
import type { Issue } from '../../../src/base/schema.ts';
import { Secret } from '../../../src/base/secret.ts';
import { parseAuthority } from '../../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { toProxyConfigDocument } from '../../../src/policy/document/proxy-config-document.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';
import { depthOf, readJson, repeatsName, stringsOf } from '../simple-json.ts';

const MIN_CREDENTIAL = 12;

export function fuzz(data: Buffer): void {
  const text = data.toString('utf8');
  const reading = parseJsonDocument(text);
  const json = readJson(Buffer.from(text));
  assert.equal(reading.ok, json !== undefined && !repeatsName(text, json.value) && depthOf(json.value) <= 32);
  if (!reading.ok) return;
  const parsed = parseProxyConfig(reading.value);
  assertReported(parsed.ok ? parsed.warnings : parsed.issues, reading.value);
  if (!parsed.ok) return assert(parsed.issues.length > 0);
  assertReadBack(parsed.value);
  assertDecides(parsed.value);
}

function assertReported(issues: readonly Issue[], document: unknown): void {
  const reported = JSON.stringify(issues);
  for (const value of opaqueValues(document))
    assert(!reported.includes(value), 'an issue tells an opaque value');
  for (const { loc, msg, type } of issues) {
    assert(msg.length > 0 && /^[a-z_]+$/.test(type));
    assert(exists(document, loc.slice(0, -1)), 'an issue names a location that does not exist');
  }
}

/** Long ones that occur nowhere else: only those can be distinguished from words of the messages. */
function opaqueValues(document: unknown): readonly string[] {
  const all = stringsOf(document);
  return objectsOf(document)
    .filter(({ type, value }) => type === 'opaque' && typeof value === 'string')
    .map(({ value }) => String(value))
    .filter(
      (value) => value.length >= MIN_CREDENTIAL && all.filter((one) => one.includes(value)).length === 1,
    );
}

function objectsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof value !== 'object' || value === null) return [];
  return [{ ...value }, ...Object.values(value).flatMap(objectsOf)];
}

function exists(document: unknown, loc: Issue['loc']): boolean {
  let at: unknown = document;
  for (const key of loc) {
    // Long keys are shortened to their beginning.
    if (typeof key === 'string' && (key.endsWith('…') || !key.isWellFormed())) return true;
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false;
    at = (at as Readonly<Record<string | number, unknown>>)[key];
  }
  return true;
}

function assertReadBack(config: ProxyConfig): void {
  const show = (value: Secret): Record<string, unknown> => ({ value: value.reveal() });
  const document = toProxyConfigDocument(config, show);
  const again = parseProxyConfig(document);
  assert(again.ok, 'what was accepted is refused when it is written back');
  assert.deepEqual(toProxyConfigDocument(again.value, show), document);
}

function assertDecides(config: ProxyConfig): void {
  const compiled = compileProxyConfig(config, () => new Secret('value'), 1);
  if (!compiled.ok) return;
  const hosts = [...config.rules, ...config.callbacks].flatMap((entry) => entry.match_hosts);
  for (const host of ['example.com', '192.0.2.1', ...hosts.map((text) => text.replace('*', 'x'))]) {
    const authority = parseAuthority(host, 443);
    assert(typeof authority !== 'string', 'a host that was accepted is no authority');
    const cover = compiled.value.coverOf(authority);
    const decision = compiled.value.decide(authority, '/v1/a');
    assert(cover.kind !== 'intercept' || decision.kind !== 'tunnel', 'an intercepted host is tunnelled');
    if (cover.kind !== 'intercept') assert.equal(decision.kind, cover.kind);
  }
}

// Fuzz target: whatever parseAuthority accepts has one spelling, and the URL parser of the web reads the same host and
// port there.
import assert from 'node:assert/strict';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';

export function fuzz(data: Buffer): void {
  const text = data.toString('latin1');
  const strict = parseAuthority(text);
  const lenient = parseAuthority(text, 443);
  if (typeof strict === 'object') assert.deepEqual(lenient, strict, 'a default port changes what has one');
  if (typeof lenient === 'object') {
    assertCanonical(lenient);
    assertSameAsUrl(text, lenient);
  } else assert(!isPlain(text), 'a plain name and port is rejected');
}

function assertCanonical(authority: Authority): void {
  const { host, kind, port, text } = authority;
  assert.deepEqual(parseAuthority(text), authority, 'the canonical text reads as another authority');
  assert.equal(text, kind === 'ipv6' ? `[${host}]:${port}` : `${host}:${port}`);
  assert(Number.isInteger(port) && port >= 1 && port <= 65_535);
  const spelling = {
    name: /^[a-z0-9_][a-z0-9_.-]*[a-z0-9_]$|^[a-z0-9_]$/,
    ipv4: /^[0-9.]+$/,
    ipv6: /^[0-9a-f:.]+$/,
  };
  assert.match(host, spelling[kind]);
}

function assertSameAsUrl(text: string, { host, kind, port }: Authority): void {
  // The URL parser also checks the Punycode of such labels; here they are letters and digits.
  if (host.includes('xn--')) return;
  const url = new URL(`https://${text}/`);
  // It writes a v4-mapped address in hexadecimal, and so do we then.
  const known = new URL(`https://${kind === 'ipv6' ? `[${host}]` : host}/`).hostname;
  assert.equal(url.hostname.replace(/\.$/, ''), known);
  assert.equal(url.port === '' ? 443 : Number(url.port), port);
}

function isPlain(text: string): boolean {
  return /^[a-z]{1,20}(?:\.[a-z]{1,20}){0,4}:[1-9][0-9]{0,3}$/.test(text);
}

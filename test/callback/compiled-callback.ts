// The parts of a call in the callback tests: a compiled entry, an authority, and an address check that allows loopback.
import type { VetHost } from '../../src/callback/client.ts';
import { type Authority, parseAuthority } from '../../src/policy/authority/authority.ts';
import type { CompiledCallback } from '../../src/policy/policy.ts';

export function compiledCallback(url: string, parts: Partial<CompiledCallback> = {}): CompiledCallback {
  return {
    index: 0,
    name: 'callbacks[0]',
    id: 'id',
    url,
    requestHeaders: [],
    ttlSeconds: 60,
    hosts: [],
    scrubsBodies: false,
    ...parts,
  };
}

export function authorityOf(text: string): Authority {
  const authority = parseAuthority(text);
  if (typeof authority === 'string') throw new Error(`${text}: ${authority}`);
  return authority;
}

/** Every name is on loopback, as name servers of a test would say. */
export const vetLoopback: VetHost = async () => ({ addresses: [{ address: '127.0.0.1', family: 4 }] });

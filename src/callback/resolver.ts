// Resolves the headers that a callback gives for an authority: from the cache, from a call under way, or by a new call.
// Only successes are cached, each for the ttl of its entry. One resolver serves one sandbox.
import { BoundedCache } from '../base/bounded-cache.ts';
import { SingleFlight } from '../base/single-flight.ts';
import type { Authority } from '../policy/authority/authority.ts';
import type { CompiledCallback, InjectedHeader } from '../policy/policy.ts';
import { CallbackCounters } from './callback-counters.ts';
import { type CallbackTrust, createCallbackClient, type VetHost } from './client.ts';

export type { VetHost } from './client.ts';

export type CallbackOutcome =
  | { readonly ok: true; readonly headers: readonly InjectedHeader[]; readonly cached: boolean }
  | { readonly ok: false; readonly reason: string };

type CachedOutcome = CallbackOutcome & { readonly ok: true };

export type CallbackResolver = {
  /** A cache hit returns synchronously, with the same frozen outcome each time. A failure is never an exception. */
  resolve(callback: CompiledCallback, authority: Authority): CallbackOutcome | Promise<CallbackOutcome>;
  /** Empties the cache when the revision changes. Calls under way still serve those who wait, and are not cached. */
  forget(): void;
  /** Ends the calls under way and every connection; later calls fail. */
  close(): Promise<void>;
  /** Cached outcomes. */
  readonly cached: number;
};

/** Memory besides names and values: the entry and its key, and for each header its objects and its line. */
const ENTRY_BYTES = 512;
const HEADER_BYTES = 256;
/** Memory for each value that is masked in responses, which lives as long: its eight forms, and their objects. */
const MASK_FACTOR = 12;
const MASK_BYTES = 3_072;

/**
 * Limits: `maxEntries` cached outcomes (1,000) of `maxCachedBytes` in all (16 MiB), `maxInFlight` distinct calls at
 * once (64), `timeoutMs` for a whole call from address check to last byte (10 s). `now` is monotonic, in
 * milliseconds. `trust` undefined: Node's roots.
 */
export function createCallbackResolver(options: {
  sandbox: string;
  vet: VetHost;
  trust: CallbackTrust | undefined;
  now?: () => number;
  maxEntries?: number;
  maxCachedBytes?: number;
  maxInFlight?: number;
  timeoutMs?: number;
  /** Sandboxes share them. */
  counters?: CallbackCounters;
}): CallbackResolver {
  const { sandbox, vet, trust, now, maxInFlight = 64, timeoutMs = 10_000 } = options;
  const { maxEntries = 1_000, maxCachedBytes = 16_777_216, counters = new CallbackCounters() } = options;
  const client = createCallbackClient({ vet, trust, timeoutMs });
  const cache = new BoundedCache<CachedOutcome>({
    max: maxEntries,
    bytes: { max: maxCachedBytes, of: bytesOf },
    ...(now && { now }),
  });
  const flights = new SingleFlight<CallbackOutcome>();
  let generation = 0;

  async function call(
    callback: CompiledCallback,
    authority: Authority,
    key: string,
  ): Promise<CallbackOutcome> {
    // Otherwise an agent that requests many names under a wildcard could flood the integrator.
    if (flights.size >= maxInFlight) return rejected(callback, counters);
    const startedIn = generation;
    const reply = await counters.measure(callback.name, client.call(callback, authority));
    if (!reply.ok) return reply;
    const { headers } = reply;
    if (startedIn === generation)
      cache.set(key, Object.freeze({ ok: true, headers, cached: true }), callback.ttlSeconds * 1_000);
    return Object.freeze({ ok: true, headers, cached: false });
  }

  return {
    resolve(callback, authority) {
      // The port is part of the key: ports 443 and 8443 may get different headers. The id covers the entry and its secrets.
      const key = `${sandbox}\n${callback.id}\n${authority.text}`;
      // With the generation in the key, a request after a change does not join a call that began before it.
      const cached = cache.get(key);
      counters.countLookup(cached !== undefined);
      return cached ?? flights.run(`${generation}\n${key}`, () => call(callback, authority, key));
    },
    forget() {
      generation += 1;
      cache.clear();
    },
    async close() {
      generation += 1;
      cache.clear();
      await client.close();
    },
    get cached() {
      return cache.size;
    },
  };
}

function rejected({ name }: CompiledCallback, counters: CallbackCounters): CallbackOutcome {
  counters.countRejected(name);
  return { ok: false, reason: 'too many callbacks in flight' };
}

function bytesOf({ headers }: CachedOutcome): number {
  let sum = ENTRY_BYTES;
  for (const { name, value, masks } of headers) {
    sum += HEADER_BYTES + name.length + value.length;
    for (const { length } of masks) sum += MASK_BYTES + MASK_FACTOR * length;
  }
  return sum;
}

// Answers which headers a callback gives for an authority: from the cache, from a call under way, or by a new call.
// Successes alone are kept, each for its entry's own time. One resolver serves one sandbox.
// It knows nothing of HTTP; the client does.
import { BoundedCache } from '../base/bounded-cache.ts';
import { SingleFlight } from '../base/single-flight.ts';
import type { Authority } from '../policy/authority/authority.ts';
import type { CompiledCallback, InjectedHeader } from '../policy/policy.ts';
import { type CallbackTrust, createCallbackClient, type VetHost } from './client.ts';

export type { VetHost } from './client.ts';

export type CallbackOutcome =
  | { readonly ok: true; readonly headers: readonly InjectedHeader[]; readonly cached: boolean }
  | { readonly ok: false; readonly reason: string };

type Kept = CallbackOutcome & { readonly ok: true };

export type CallbackResolver = {
  /** A cache hit answers synchronously, with the same frozen outcome each time. A failure is never an exception. */
  resolve(callback: CompiledCallback, authority: Authority): CallbackOutcome | Promise<CallbackOutcome>;
  /** Empties the cache: a revision ended. Calls under way still answer those who asked, and are not kept. */
  forget(): void;
  /** Ends the calls under way and every connection; whoever asks later gets a failure. */
  close(): Promise<void>;
};

/** Beside names and values: the entry and its key, and for each header its objects and its line. */
const ENTRY_BYTES = 512;
const HEADER_BYTES = 256;
/** Of each value that is hidden in answers, which lives as long: its eight forms together, and their objects. */
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
}): CallbackResolver {
  const { sandbox, vet, trust, now, maxInFlight = 64, timeoutMs = 10_000 } = options;
  const { maxEntries = 1_000, maxCachedBytes = 16_777_216 } = options;
  const client = createCallbackClient({ vet, trust, timeoutMs });
  const cache = new BoundedCache<Kept>({
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
    // An agent that sprays names under a wildcard would otherwise aim a flood at the integrator.
    if (flights.size >= maxInFlight) return { ok: false, reason: 'too many callbacks in flight' };
    const born = generation;
    const reply = await client.call(callback, authority);
    if (!reply.ok) return reply;
    const { headers } = reply;
    if (born === generation)
      cache.set(key, Object.freeze({ ok: true, headers, cached: true }), callback.ttlSeconds * 1_000);
    return Object.freeze({ ok: true, headers, cached: false });
  }

  return {
    resolve(callback, authority) {
      // The port is part of the key: 443's headers are not 8443's. The id covers the entry and its secrets.
      const key = `${sandbox}\n${callback.id}\n${authority.text}`;
      // The generation keeps those who ask after a change from joining a call that began before it.
      return cache.get(key) ?? flights.run(`${generation}\n${key}`, () => call(callback, authority, key));
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
  };
}

function bytesOf({ headers }: Kept): number {
  let sum = ENTRY_BYTES;
  for (const { name, value, masks } of headers) {
    sum += HEADER_BYTES + name.length + value.length;
    for (const { length } of masks) sum += MASK_BYTES + MASK_FACTOR * length;
  }
  return sum;
}

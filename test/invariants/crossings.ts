// What two sandboxes of one sidecar must never share, judged from what their clients, the origin and the records saw. Pure.
import type { LogRecord } from '../support/spawned-process.ts';
import type { Arrival, BoxName } from './two-sandbox-scene.ts';

export const crossingKinds = [
  'credential',
  'callback result',
  'upstream connection',
  'client session',
  'response',
  'upgrade',
  'record',
] as const;
export type CrossingKind = (typeof crossingKinds)[number];

/** What the clients saw. */
export type Received = {
  readonly nonce: string;
  /** The nonces in the response. */
  readonly got: string;
};
/** A client of `at` offered a TLS session that the sidecar gave to a client of `from`. */
export type OfferedSession = { readonly at: BoxName; readonly from: BoxName; readonly isResumed: boolean };

export type Observed = {
  readonly ids: Readonly<Record<BoxName, string>>;
  readonly arrivals: readonly Arrival[];
  readonly received: readonly Received[];
  readonly sessions: readonly OfferedSession[];
  readonly upgraded: ReadonlyMap<string, string>;
  readonly records: readonly LogRecord[];
};

/** For each kind the nonces, values or ids that crossed. */
export function findCrossings(seen: Observed): Readonly<Record<CrossingKind, readonly string[]>> {
  const { arrivals, received, sessions, upgraded, records, ids } = seen;
  return {
    credential: arrivals
      .filter(({ nonce, key }) => key !== undefined && !key.startsWith(`key-${boxOf(nonce)}-`))
      .map(({ nonce, key }) => `${nonce} with ${key}`),
    'callback result': sharedBy(arrivals, ({ token }) => token),
    'upstream connection': sharedBy(arrivals, ({ connection }) => connection),
    'client session': sessions
      .filter(({ at, from, isResumed }) => isResumed && at !== from)
      .map(({ at, from }) => `that of ${from} at ${at}`),
    response: received
      .filter(({ nonce, got }) => got !== nonce)
      .map(({ nonce, got }) => `${nonce} got ${got}`),
    upgrade: [...upgraded]
      .filter(([nonce, text]) => text !== '' && text !== `${nonce}\n`)
      .map(([nonce]) => nonce),
    record: records.flatMap(({ path, sandbox }) => {
      const nonce = nonceIn(path);
      return nonce === undefined || ids[boxOf(nonce)] === sandbox ? [] : [`${nonce} as ${String(sandbox)}`];
    }),
  };
}

/** The values that arrived with nonces of both boxes. */
function sharedBy(
  arrivals: readonly Arrival[],
  valueOf: (arrival: Arrival) => string | undefined,
): readonly string[] {
  const seen = new Map<string, Set<BoxName>>();
  for (const arrival of arrivals) {
    const value = valueOf(arrival);
    if (value === undefined) continue;
    const boxes = seen.get(value) ?? new Set();
    seen.set(value, boxes.add(boxOf(arrival.nonce)));
  }
  return [...seen].filter(([, boxes]) => boxes.size > 1).map(([value]) => value);
}

export function nonceIn(path: unknown): string | undefined {
  return /[AB]-\d+$/.exec(String(path))?.[0];
}

function boxOf(nonce: string): BoxName {
  return nonce.startsWith('A') ? 'A' : 'B';
}

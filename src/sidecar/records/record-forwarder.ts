// Records of exchanges on their way to the platform: a queue and a delivery for each token. Loaded when the config names
// a platform. It must not know what a record holds.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Log } from '../../base/log.ts';
import { Secret } from '../../base/secret.ts';
import { Delivery, type DeliveryCounts, type Pace } from './record-delivery.ts';
import type { RecordForward } from './record-forward-config.ts';
import { type Posted, type RecordPost, createRecordPost } from './record-post.ts';
import { type Held, RecordQueue } from './record-queue.ts';
import { readSecretFile } from '../secret-files.ts';

export type RecordForwarder = {
  /** `members`: of the record, as JSON without its braces. */
  take(sandbox: string, members: string): void;
  /** Whether so much of this sandbox waits that new exchanges should be refused. */
  isBlocked(sandbox: string): boolean;
  readonly counts: Readonly<DeliveryCounts>;
  /** Sends what waits, for at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
};

export type RecordForwarderOptions = RecordForward & {
  readonly log: Log;
  readonly pace?: Partial<Pace>;
  readonly timeoutMs?: number;
};

type Lane = {
  /** Of the records of this lane, with their numbers: a file that was copied for two sandboxes mixes nothing up. */
  readonly source: string;
  readonly queue: RecordQueue;
  readonly delivery: Delivery;
  nextNumber: number;
  isLosing: boolean;
};

const PACE: Pace = {
  maxCount: 500,
  maxChars: 256 * 1024,
  lingerMs: 1_000,
  firstPauseMs: 500,
  lastPauseMs: 30_000,
};
const TIMEOUT_MS = 30_000;
/** Twice as many as there can be sandboxes: of those that are gone, lanes that are empty are forgotten, or stuck ones given up. */
const MAX_LANES = 2_000;

/** Throws an Error that says what to mend when a file that it needs from the beginning cannot be read. */
export function createRecordForwarder(options: RecordForwarderOptions): RecordForwarder {
  const { url, tokenFile, caFile, log } = options;
  const pace = { ...PACE, ...options.pace };
  const caPem = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
  const hasOneToken = !tokenFile.includes(PLACEHOLDER);
  if (hasOneToken) readToken(tokenFile);
  const poster = createRecordPost({ url, caPem, timeoutMs: options.timeoutMs ?? TIMEOUT_MS });
  const held: Held = { total: 0 };
  const counts: DeliveryCounts = { taken: 0, lost: 0 };
  const lanes = new Map<string, Lane>();
  const ending = new Set<Promise<void>>();

  function laneOf(sandbox: string): Lane {
    const name = hasOneToken ? ALL : sandbox;
    return lanes.get(name) ?? addLane(name);
  }

  function addLane(name: string): Lane {
    if (lanes.size >= MAX_LANES) makeSpace();
    const queue = new RecordQueue(held);
    const source = randomUUID();
    const file = tokenFile.replaceAll(PLACEHOLDER, name);
    const send = (records: readonly string[], signal: AbortSignal): Promise<Posted> =>
      sendBatch(poster, file, { source, records }, signal);
    const delivery = new Delivery({ queue, counts, log, name, pace, send });
    const lane = { source, queue, delivery, nextNumber: 0, isLosing: false };
    lanes.set(name, lane);
    return lane;
  }

  function makeSpace(): void {
    for (const [name, { delivery }] of lanes) if (delivery.isIdle) lanes.delete(name);
    if (lanes.size < MAX_LANES) return;
    const [stuck] = [...lanes].filter(([, { delivery }]) => delivery.isFailing);
    if (stuck === undefined) return;
    const [name, { delivery }] = stuck;
    lanes.delete(name);
    const ended = delivery.close(AbortSignal.abort()).finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    counts,
    take(sandbox, members) {
      const lane = laneOf(sandbox);
      const number = lane.nextNumber;
      lane.nextNumber += 1;
      if (lane.queue.isFull) {
        counts.lost += 1;
        if (!lane.isLosing) log.error({ sandbox }, 'records are lost to the platform: too many wait');
        lane.isLosing = true;
        return;
      }
      lane.isLosing = false;
      lane.queue.push(`{"number":${number},${members}}`);
      lane.delivery.notice();
    },
    isBlocked: (sandbox) => lanes.get(hasOneToken ? ALL : sandbox)?.queue.isBlocked ?? false,
    async close(timeoutMs) {
      const end = new AbortController();
      const timer = setTimeout(() => end.abort(), timeoutMs);
      const all = [...lanes.values()].map(({ delivery }) => delivery.close(end.signal));
      await Promise.all([...all, ...ending]);
      clearTimeout(timer);
      poster.close();
    },
  };
}

const PLACEHOLDER = '{sandbox}';
/** In the log, where one token sends the records of all. */
const ALL = 'all';

type Sending = { readonly source: string; readonly records: readonly string[] };

async function sendBatch(
  poster: RecordPost,
  file: string,
  { source, records }: Sending,
  signal: AbortSignal,
): Promise<Posted> {
  let token: Secret;
  try {
    // Each time: it may have been replaced.
    token = readToken(file);
  } catch (error) {
    return { kind: 'later', cause: error instanceof Error ? error.message : 'no token', afterMs: 0 };
  }
  const body = Buffer.from(wellFormed(`{"source":"${source}","records":[${records.join(',')}]}`), 'utf8');
  return poster.post({ count: records.length, body }, token, signal);
}

function readToken(file: string): Secret {
  const token = new Secret(readSecretFile('record token', file).value);
  if (!token.satisfies((value) => /^[\x21-\x7e]{1,512}$/.test(value)))
    throw new Error(`${file}: the token should be one line of visible ASCII`);
  return token;
}

/** Half a character in the name of a rule, which JSON writes as an escape, is nothing that a database keeps. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replaceAll(/\\(?:ud[0-9a-f]{3}|.)/g, (escape) =>
    escape.startsWith('\\ud') ? '\ufffd' : escape,
  );
}

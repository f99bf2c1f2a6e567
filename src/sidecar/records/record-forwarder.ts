// Forwards the records of exchanges to the platform: a queue and a delivery for each token. Loaded if the config names a
// platform. Independent of the content of records.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Log } from '../../base/log.ts';
import { Secret } from '../../base/secret.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { readSecretFile } from '../secret-files.ts';
import { Delivery, type DeliveryCounts, type Pace, defaultPace } from './record-delivery.ts';
import type { RecordForward } from './record-forward-config.ts';
import { type Posted, type RecordPost, createRecordPost } from './record-post.ts';
import { type Held, RecordQueue } from './record-queue.ts';

export type RecordForwarderOptions = RecordForward & {
  readonly log: Log;
  readonly pace?: Partial<Pace>;
  readonly timeoutMs?: number;
};

type Lane = {
  readonly queue: RecordQueue;
  readonly delivery: Delivery;
  nextNumber: number;
  isLosing: boolean;
};

const TIMEOUT_MS = 30_000;
/** Twice the possible number of sandboxes. Beyond it idle lanes are removed, then failing ones with their records. */
const MAX_LANES = 2_000;
const PLACEHOLDER = '{sandbox}';
/** The name in the log if one token sends the records of all sandboxes. */
const ALL = 'all';

export class RecordForwarder {
  readonly counts: DeliveryCounts = { accepted: 0, lost: 0 };
  readonly #options: RecordForwarderOptions;
  readonly #pace: Pace;
  readonly #post: RecordPost;
  readonly #held: Held = { total: 0 };
  readonly #lanes = new Map<string, Lane>();
  readonly #ending = new Set<Promise<void>>();

  /** Throws an Error that says what to do if a file cannot be read that is needed from the start. */
  constructor(options: RecordForwarderOptions) {
    const { url, tokenFile, caFile, timeoutMs = TIMEOUT_MS } = options;
    this.#options = options;
    this.#pace = { ...defaultPace, ...options.pace };
    const caPem = caFile === undefined ? undefined : readCa(caFile);
    if (!tokenFile.includes(PLACEHOLDER)) readToken(tokenFile);
    this.#post = createRecordPost(url, caPem, timeoutMs);
  }

  /** `members`: the record as JSON without its braces. */
  add(sandbox: string, members: string): void {
    const name = this.#laneName(sandbox);
    const lane = this.#lanes.get(name) ?? this.#addLane(name);
    const number = lane.nextNumber;
    lane.nextNumber += 1;
    if (lane.queue.isFull) {
      this.counts.lost += 1;
      if (!lane.isLosing)
        this.#options.log.error({ sandbox }, 'records are lost: too many wait for the platform');
      lane.isLosing = true;
      return;
    }
    lane.isLosing = false;
    lane.queue.push(`{"number":${number},${members}}`);
    lane.delivery.notify();
  }

  /** Records that wait to be sent. */
  get waiting(): number {
    return this.#lanes.values().reduce((sum, { queue }) => sum + queue.length, 0);
  }

  /** Whether so many records of this sandbox wait that new exchanges must be rejected. */
  isBlocked(sandbox: string): boolean {
    return this.#lanes.get(this.#laneName(sandbox))?.queue.isBlocked ?? false;
  }

  /** Sends the waiting records, for at most `timeoutMs`. */
  async close(timeoutMs: number): Promise<void> {
    const end = new AbortController();
    const timer = setTimeout(() => end.abort(), timeoutMs);
    const all = this.#lanes.values().map(({ delivery }) => delivery.close(end.signal));
    await Promise.all([...all, ...this.#ending]);
    clearTimeout(timer);
    this.#post.close();
  }

  #laneName(sandbox: string): string {
    return this.#options.tokenFile.includes(PLACEHOLDER) ? sandbox : ALL;
  }

  #addLane(name: string): Lane {
    if (this.#lanes.size >= MAX_LANES) this.#makeSpace();
    const { log, tokenFile } = this.#options;
    const queue = new RecordQueue(this.#held);
    // With its number it identifies a record, even if two sandboxes use copies of one token.
    const source = randomUUID();
    const file = tokenFile.replaceAll(PLACEHOLDER, name);
    const send = (records: readonly string[], signal: AbortSignal): Promise<Posted> =>
      sendBatch(this.#post, file, { source, records }, signal);
    const delivery = new Delivery({ queue, counts: this.counts, log, name, pace: this.#pace, send });
    const lane = { queue, delivery, nextNumber: 0, isLosing: false };
    this.#lanes.set(name, lane);
    return lane;
  }

  #makeSpace(): void {
    const lanes = this.#lanes;
    for (const [name, { delivery }] of lanes) if (delivery.isIdle) lanes.delete(name);
    const failing = lanes.entries().find(([, { delivery }]) => delivery.isFailing);
    if (lanes.size < MAX_LANES || failing === undefined) return;
    const [name, { delivery }] = failing;
    lanes.delete(name);
    const ended = delivery.close(AbortSignal.abort()).finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const setting = 'records.forward.ca_file (SALLYPORT_RECORDS_FORWARD_CA)';
    throw new Error(`${setting}: ${file} cannot be read: ${codeOf(cause)}`, { cause });
  }
}

type Sending = { readonly source: string; readonly records: readonly string[] };

async function sendBatch(
  post: RecordPost,
  file: string,
  { source, records }: Sending,
  signal: AbortSignal,
): Promise<Posted> {
  let token: Secret;
  try {
    // Read for each batch: it may have been replaced.
    token = readToken(file);
  } catch (error) {
    return { kind: 'retry', cause: error instanceof Error ? error.message : 'no token', afterMs: 0 };
  }
  const body = Buffer.from(wellFormed(`{"source":"${source}","records":[${records.join(',')}]}`), 'utf8');
  return post.post({ count: records.length, body }, token, signal);
}

function readToken(file: string): Secret {
  const token = new Secret(readSecretFile('record token', file).value);
  if (!token.satisfies((value) => /^[\x21-\x7e]{1,512}$/.test(value)))
    throw new Error(`${file}: the record token must be one line of visible ASCII`);
  return token;
}

/** A lone surrogate, for example in the name of a rule, cannot be stored by a database. JSON writes it as an escape. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replaceAll(/\\(?:ud[0-9a-f]{3}|.)/g, (escape) =>
    escape.startsWith('\\ud') ? '\ufffd' : escape,
  );
}

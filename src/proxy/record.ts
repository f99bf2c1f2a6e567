// The one record of each exchange, tunnel and refusal: allow-listed fields, never a value of a header, never a query.
// It is emitted exactly once, however the exchange ends.
import type { LineWriter } from '../base/log.ts';

/** `served`: the proxy itself responded, without an upstream. */
export const outcomes = [
  'injected',
  'forwarded',
  'tunnelled',
  'refused',
  'failed',
  'upgraded',
  'served',
] as const;
export type Outcome = (typeof outcomes)[number];

/** Filled in while the exchange runs. Undefined fields are omitted when it is written. */
export type ExchangeRecord = {
  sandbox: string;
  revision: number;
  client?: string | undefined;
  method?: string | undefined;
  scheme?: 'http' | 'https' | 'tunnel' | undefined;
  /** Unset for HTTP/1. */
  protocol?: 'h2' | undefined;
  authority?: string | undefined;
  path?: string;
  rule?: string | undefined;
  callback?: string | undefined;
  callback_cached?: boolean | undefined;
  injected?: readonly string[] | undefined;
  outcome?: Outcome | undefined;
  reason?: string | undefined;
  /** Detail for the operator, for example an error code or a class of address. Never text from the network. */
  cause?: string | undefined;
  status?: number | undefined;
  upstream_reused?: boolean | undefined;
  unframed?: boolean | undefined;
  /** How many occurrences of secrets were masked in the body. */
  scrubbed?: number | undefined;
  bytes_up: number;
  bytes_down: number;
  /** Set when it is emitted. */
  duration_ms?: number | undefined;
  /** Not written: the text that records of the same connection share. */
  memo?: RecordMemo | undefined;
};

export type Recorder = {
  /** True while records cannot be written and the operator wants requests to be refused then. */
  readonly isBlocked: boolean;
  emit(record: ExchangeRecord, startedMs: number, endedMs?: number): void;
  readonly counts: Readonly<RecordCounts>;
};

/** `emitted`: whether they are written or not. */
export type RecordCounts = { emitted: number; dropped: number };

const MAX_PATH_CHARS = 512;

export function createRecorder(options: {
  /** Undefined: records are turned off. */
  write: LineWriter<ExchangeRecord> | undefined;
  sink: { readonly isBlocked: boolean };
  /** `refuse` new exchanges while the sink is blocked, or `drop` their records and count them. */
  whenBlocked: 'refuse' | 'drop';
  /** Recorders may share them. */
  counts?: RecordCounts;
  /** Gets every record, whether it is written or not. */
  onEnded?: (record: ExchangeRecord, durationMs: number) => void;
}): Recorder {
  const { write, sink, whenBlocked, counts = { emitted: 0, dropped: 0 }, onEnded } = options;
  return {
    counts,
    get isBlocked() {
      return whenBlocked === 'refuse' && sink.isBlocked;
    },
    emit(record, startedMs, endedMs = performance.now()) {
      record.duration_ms = Math.round((endedMs - startedMs) * 1000) / 1000;
      onEnded?.(record, record.duration_ms);
      if (sink.isBlocked && whenBlocked === 'drop') {
        counts.dropped += 1;
        return;
      }
      counts.emitted += 1;
      write?.(record, 'exchange');
    },
  };
}

/** A callback that fails is an error of the operator's own endpoint, and no client can correct it. */
export function isWarning({ reason }: ExchangeRecord): boolean {
  return reason === 'callback_failed';
}

/** The path of an origin-form target without its query, cut to 512 characters. */
export function recordedPath(target: string): string {
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  return path.length <= MAX_PATH_CHARS ? path : `${path.slice(0, MAX_PATH_CHARS)}…`;
}

/** The record as members of a JSON object without its braces, in the order of the platform's schema. */
export function recordMembers(record: ExchangeRecord): string {
  const { path, bytes_up, bytes_down, duration_ms, memo = new RecordMemo() } = record;
  const origin = memo.originOf(record);
  const begin = path === undefined ? origin : `${origin},"path":${JSON.stringify(path)}`;
  const members = `${begin}${memo.resultOf(record)},"bytes_up":${bytes_up},"bytes_down":${bytes_down}`;
  return duration_ms === undefined ? members : `${members},"duration_ms":${duration_ms}`;
}

/** Where the request came from and where it goes. */
type Origin = Pick<
  ExchangeRecord,
  'sandbox' | 'revision' | 'client' | 'method' | 'scheme' | 'protocol' | 'authority'
>;
type Result = Pick<
  ExchangeRecord,
  | 'rule'
  | 'callback'
  | 'callback_cached'
  | 'injected'
  | 'outcome'
  | 'reason'
  | 'cause'
  | 'status'
  | 'upstream_reused'
  | 'unframed'
  | 'scrubbed'
>;

/** Text of the last record of a connection, which the next record repeats. It is used for equal values only. */
export class RecordMemo {
  #origin: Origin | undefined;
  #originText = '';
  #result: Result | undefined;
  #resultText = '';

  originOf(record: ExchangeRecord): string {
    if (this.#origin && isSameOrigin(this.#origin, record)) return this.#originText;
    const { sandbox, revision, client, method, scheme, protocol, authority } = record;
    this.#origin = { sandbox, revision, client, method, scheme, protocol, authority };
    this.#originText = JSON.stringify(this.#origin).slice(1, -1);
    return this.#originText;
  }

  /** Begins with a comma, unless it is empty. */
  resultOf(record: ExchangeRecord): string {
    if (this.#result && isSameResult(this.#result, record)) return this.#resultText;
    const { rule, callback, callback_cached, injected, outcome, reason, cause } = record;
    const { status, upstream_reused, unframed, scrubbed } = record;
    const decision = { rule, callback, callback_cached, injected, outcome, reason, cause };
    this.#result = { ...decision, status, upstream_reused, unframed, scrubbed };
    const members = JSON.stringify(this.#result).slice(1, -1);
    this.#resultText = members === '' ? '' : `,${members}`;
    return this.#resultText;
  }
}

function isSameOrigin(one: Origin, other: Origin): boolean {
  return (
    one.method === other.method &&
    one.authority === other.authority &&
    one.revision === other.revision &&
    one.client === other.client &&
    one.scheme === other.scheme &&
    one.protocol === other.protocol &&
    one.sandbox === other.sandbox
  );
}

/** Of an injection the names are one frozen array, whose identity is enough. */
function isSameResult(one: Result, other: Result): boolean {
  return (
    one.injected === other.injected &&
    one.rule === other.rule &&
    one.callback === other.callback &&
    one.callback_cached === other.callback_cached &&
    one.outcome === other.outcome &&
    one.reason === other.reason &&
    one.cause === other.cause &&
    one.status === other.status &&
    one.upstream_reused === other.upstream_reused &&
    one.unframed === other.unframed &&
    one.scrubbed === other.scrubbed
  );
}

// The one record of each exchange, tunnel and refusal: allow-listed fields, never a value of a header, never a query.
// It is emitted exactly once, however the exchange ends.
import type { LineWriter } from '../base/log.ts';

export type Outcome = 'injected' | 'forwarded' | 'tunnelled' | 'refused' | 'failed' | 'upgraded';

/** Filled in while the exchange runs. Undefined fields are omitted when it is written. */
export type ExchangeRecord = {
  sandbox: string;
  revision: number;
  client?: string | undefined;
  method?: string | undefined;
  scheme?: 'http' | 'https' | 'tunnel';
  /** Unset for HTTP/1. */
  protocol?: 'h2';
  authority?: string;
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
};

export type Recorder = {
  /** True while records cannot be written and the operator wants requests to be refused then. */
  readonly isBlocked: boolean;
  emit(record: ExchangeRecord, startedMs: number): void;
  readonly counts: { readonly emitted: number; readonly dropped: number };
};

const MAX_PATH_CHARS = 512;

export function createRecorder(options: {
  /** Undefined: records are turned off. */
  write: LineWriter | undefined;
  sink: { readonly isBlocked: boolean };
  /** `refuse` new exchanges while the sink is blocked, or `drop` their records and count them. */
  whenBlocked: 'refuse' | 'drop';
}): Recorder {
  const { write, sink, whenBlocked } = options;
  const counts = { emitted: 0, dropped: 0 };
  return {
    counts,
    get isBlocked() {
      return whenBlocked === 'refuse' && sink.isBlocked;
    },
    emit(record, startedMs) {
      if (sink.isBlocked && whenBlocked === 'drop') {
        counts.dropped += 1;
        return;
      }
      counts.emitted += 1;
      if (!write) return;
      record.duration_ms = Math.round((performance.now() - startedMs) * 1000) / 1000;
      write(record, 'exchange');
    },
  };
}

/** The path of an origin-form target without its query, cut to 512 characters. */
export function recordedPath(target: string): string {
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  return path.length <= MAX_PATH_CHARS ? path : `${path.slice(0, MAX_PATH_CHARS)}…`;
}

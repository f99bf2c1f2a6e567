// Stage `h2`: arbitrary frames from a client or from a host. A row is written with the functions below or as a list of
// steps. A step without `stream` applies to the stream that was opened last, at the host to the stream of the request.
// `{authority}` and `{port}` are those of the tunnel, `{SECRET}` is the credential. Independent of proxy and driver.
import type { ErrorName, FrameType, Settings } from '../../support/h2-frames.ts';
import type { AttackRow } from '../row.ts';

/** A field with its HPACK representation, an index into the HPACK tables (repeated `times`), or bytes of the block in hex. */
export type Part =
  | readonly [name: string, value: string, indexing?: 'plain' | 'indexing' | 'never']
  | { readonly index: number; readonly times?: number }
  | { readonly hex: string };

export type FrameStep =
  /** HEADERS; on a new stream by default. `isOpen`: without END_HEADERS. */
  | {
      readonly head: readonly Part[];
      readonly stream?: number;
      readonly isEnd?: true;
      readonly isOpen?: true;
      readonly split?: number;
    }
  | { readonly data: string; readonly stream?: number; readonly isEnd?: true; readonly padding?: number }
  | { readonly rst: ErrorName | number; readonly stream?: number }
  | { readonly window: number; readonly stream?: number }
  | { readonly settings: Settings }
  | { readonly goaway: number; readonly code: ErrorName; readonly debug?: string }
  /** A frame whose length and flags may be wrong; its payload is latin1. */
  | {
      readonly frame: FrameType | number;
      readonly stream?: number;
      readonly flags?: number;
      readonly length?: number;
      readonly payload?: string;
    }
  | { readonly bytes: string }
  | { readonly times: number; readonly steps: readonly FrameStep[] };

export type H2Step =
  | FrameStep
  /** At the client: waits for the response head or the complete response. At the host: for the complete request. */
  | { readonly wait: 'head' | 'whole' }
  /** Waits until another request has arrived at the host. */
  | { readonly wait: 'arrival' }
  | { readonly leave: 'fin' | 'rst' };

export type H2Script = {
  /** The first SETTINGS of the client, or `none` for neither preface nor SETTINGS. */
  readonly greeting?: Settings | 'none';
  /** What the client sends; a plain GET by default. */
  readonly client?: readonly H2Step[];
  /** What the host sends on the first request; the default, also for all other requests, is a response with `METHOD path`. */
  readonly host?: readonly H2Step[];
};

export type H2Arrival = {
  /** All fields in order, the pseudo-header fields first. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
};

export type H2Response = {
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly trailers?: readonly (readonly [name: string, value: string])[];
  /** Statuses of the interim heads. */
  readonly interim?: readonly number[];
};

export type H2Expectation = {
  /** For each stream: `200`, `421 authority_mismatch`, `RST CANCEL`; `200 RST CANCEL` for a truncated response; `|` separates alternatives. */
  readonly streams: Readonly<Record<number, string>>;
  /** The response on stream 1, if the row checks it. */
  readonly response?: H2Response;
  /** The connection is closed; a GOAWAY before that has one of these codes. */
  readonly ends?: readonly ErrorName[];
  /** The complete requests at the host, in order; or their maximum number. */
  readonly arrives: readonly H2Arrival[] | number;
  /** The number of requests that may begin at the host without completing. */
  readonly mayBegin?: number;
  /** By how much each of these numbers that is not 0 grows with each tick of the sessions, which refills their limits. */
  readonly perTick?: number;
  /** Whether the next request reached the host on the same session. */
  readonly host?: 'reused' | 'fresh';
  /** `outcome reason cause` or a prefix, each of some record; in addition to the record derived for each stream. */
  readonly records?: readonly string[];
};

export type H2Row = AttackRow<H2Script, H2Expectation>;

type Pseudo = Readonly<Record<string, string | undefined>>;

/** The pseudo-fields of a GET with overrides (undefined omits one), then `extra`. */
export function fields(pseudo: Pseudo = {}, extra: readonly Part[] = []): readonly Part[] {
  const first = { ':method': 'GET', ':scheme': 'https', ':authority': '{authority}', ':path': '/row' };
  const named = Object.entries({ ...first, ...pseudo });
  return [
    ...named.flatMap(([name, value]): Part[] => (value === undefined ? [] : [[name, value]])),
    ...extra,
  ];
}

/** A complete request in one frame. */
export function get(extra: readonly Part[] = [], pseudo: Pseudo = {}): FrameStep {
  return { head: fields(pseudo, extra), isEnd: true };
}

/** A request whose body follows. */
export function begin(extra: readonly Part[] = [], pseudo: Pseudo = {}): FrameStep {
  return { head: fields({ ':method': 'POST', ...pseudo }, extra) };
}

type Pair = readonly [string, string];

/** The request as it arrives at the host, with the injected field. */
export function arrival(extra: readonly Pair[] = [], pseudo: Pseudo = {}, body = ''): H2Arrival {
  const pairs = fields(pseudo).filter((part): part is Pair => Array.isArray(part));
  return { fields: [...pairs, ...extra, ['authorization', 'Bearer {SECRET}']], body };
}

export function served(...arrives: readonly H2Arrival[]): H2Expectation {
  return { streams: Object.fromEntries(arrives.map((_, i) => [2 * i + 1, '200'])), arrives };
}

/** One stream with this outcome, and no request at the host. */
export function responded(what: string): H2Expectation {
  return { streams: { 1: what }, arrives: [] };
}

/** nghttp2 resets the stream (RFC 9113 §8.1.1), which is counted. */
export const reset: H2Expectation = {
  ...responded('RST PROTOCOL_ERROR'),
  records: ['refused malformed_request http2_layer: 1'],
};

/** The whole connection is closed, with one of these codes. */
export function ends(...codes: readonly ErrorName[]): H2Expectation {
  return { streams: {}, ends: codes, arrives: [] };
}

/** `[name, client's steps, expectation]` as rows of one class. */
export function clientRows(
  classId: string,
  table: readonly (readonly [name: string, client: readonly H2Step[], expect: H2Expectation])[],
): readonly H2Row[] {
  return table.map(([name, client, expect]) => ({ id: `${classId} ${name}`, script: { client }, expect }));
}

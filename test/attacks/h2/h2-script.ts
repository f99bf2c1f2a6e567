// Stage `h2`: frames, from a client that sends what it likes or from a host that does. How to write a row: `asks` and its
// kin below, or a list of steps. A step without `stream` speaks of the stream that was opened last, or at the host of the
// stream that is being answered. `{authority}` and `{port}` are those of the tunnel, `{SECRET}` is the credential.
// It knows neither proxy nor driver.
import type { ErrorName, FrameType, Settings } from '../../support/h2-frames.ts';
import type { AttackRow } from '../row.ts';

/** A field as HPACK is told to write it, an index into its tables (so many times), or bytes of the block in hex. */
export type Part =
  | readonly [name: string, value: string, indexing?: 'plain' | 'indexing' | 'never']
  | { readonly index: number; readonly times?: number }
  | { readonly hex: string };

export type FrameStep =
  /** HEADERS; on a new stream unless it says which. `isOpen`: without END_HEADERS. */
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
  /** A frame that may lie about itself; its payload is latin1. */
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
  /** At the client: the answer's head, or all of it. At the host: the whole request. */
  | { readonly wait: 'head' | 'whole' }
  /** A further request is at the host. */
  | { readonly wait: 'arrival' }
  | { readonly leave: 'fin' | 'rst' };

export type H2Script = {
  /** Instead of preface and SETTINGS; the first SETTINGS, or nothing. */
  readonly greeting?: Settings | 'none';
  /** What the client sends; a plain GET where only the host attacks. */
  readonly client?: readonly H2Step[];
  /** How the host answers the first request; without it, and all others, `METHOD path`. */
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
  /** Statuses of the heads before it. */
  readonly interim?: readonly number[];
};

export type H2Expectation = {
  /** By stream: `200`, `421 authority_mismatch`, `RST CANCEL`; `200 RST CANCEL` for one that was broken off. `|` between alternatives. */
  readonly streams: Readonly<Record<number, string>>;
  /** Of stream 1, where it is the row's point. */
  readonly response?: H2Response;
  /** The connection ends, and where GOAWAY was read before, it was of one of these. */
  readonly ends?: readonly ErrorName[];
  /** Whole requests at the host, in order. A number: at most so many. */
  readonly arrives: readonly H2Arrival[] | number;
  /** Requests that may begin at the host and never become whole. */
  readonly mayBegin?: number;
  /** Whether the next request came to the host by the same session. */
  readonly host?: 'reused' | 'fresh';
  /** `outcome reason cause`, as far as given, each in some record; the derived one of each answered stream besides. */
  readonly records?: readonly string[];
};

export type H2Row = AttackRow<H2Script, H2Expectation>;

type Pseudo = Readonly<Record<string, string | undefined>>;

/** The fields of a GET, or others instead (undefined leaves one out), then `extra`. */
export function fields(pseudo: Pseudo = {}, extra: readonly Part[] = []): readonly Part[] {
  const first = { ':method': 'GET', ':scheme': 'https', ':authority': '{authority}', ':path': '/row' };
  const named = Object.entries({ ...first, ...pseudo });
  return [
    ...named.flatMap(([name, value]): Part[] => (value === undefined ? [] : [[name, value]])),
    ...extra,
  ];
}

/** A whole request in one frame. */
export function get(extra: readonly Part[] = [], pseudo: Pseudo = {}): FrameStep {
  return { head: fields(pseudo, extra), isEnd: true };
}

/** A request whose body is still to come. */
export function begin(extra: readonly Part[] = [], pseudo: Pseudo = {}): FrameStep {
  return { head: fields({ ':method': 'POST', ...pseudo }, extra) };
}

type Pair = readonly [string, string];

/** What arrives of a request, injected. */
export function arrival(extra: readonly Pair[] = [], pseudo: Pseudo = {}, body = ''): H2Arrival {
  const pairs = fields(pseudo).filter((part): part is Pair => Array.isArray(part));
  return { fields: [...pairs, ...extra, ['authorization', 'Bearer {SECRET}']], body };
}

export function served(...arrives: readonly H2Arrival[]): H2Expectation {
  return { streams: Object.fromEntries(arrives.map((_, i) => [2 * i + 1, '200'])), arrives };
}

/** One stream that is answered so, and nothing at the host. */
export function responded(what: string): H2Expectation {
  return { streams: { 1: what }, arrives: [] };
}

/** Reset below us (RFC 9113 §8.1.1), which is counted. */
export const reset: H2Expectation = {
  ...responded('RST PROTOCOL_ERROR'),
  records: ['refused malformed_request http2_layer: 1'],
};

/** The whole connection ends, by one of these codes. */
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

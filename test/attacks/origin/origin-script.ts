// The script of a row of stage `origin`: a well-behaved client, a hostile host, and what the client must read. Bytes are
// latin1 strings; `{HOST}` is the authority of the tunnel, `{ELSEWHERE}` the port of another origin, which must never get
// a connection. Independent of the proxy.
import type { AttackRow } from '../row.ts';

/** Bytes; a list is the concatenation of its parts, so that a megabyte can be written briefly. */
export type Bytes = string | readonly (string | { readonly repeat: string; readonly times: number })[];

export type OriginStep =
  | { readonly send: Bytes }
  /** Each byte in a separate write. */
  | { readonly drip: Bytes }
  /** The same bytes until the connection is closed. */
  | { readonly flood: string }
  /** Waits until these bytes have arrived after the request head. */
  | { readonly through: string }
  /** Waits for the request's body. */
  | 'body'
  /** Lets the client send the next segment of its request. */
  | 'go'
  /** Waits until the client has read every response that it waits for. */
  | 'responded'
  /** Waits until the other side has closed or reset the connection. */
  | 'closed'
  | 'end'
  | 'reset';

export type OriginScript = {
  /** Segments; the next one is sent at a `go`. A plain GET by default. */
  readonly request?: readonly string[];
  /** The number of responses that the client waits for (default 1). */
  readonly reads?: number;
  /** The number of plain exchanges before, on the same two connections (default 0). */
  readonly before?: number;
  /** What the host does on the request; later requests get a plain response. */
  readonly response: readonly OriginStep[];
  /** The client disconnects once it has read this number of bytes. */
  readonly leavesAfter?: number;
  /** The name in the CONNECT (default `api.test`); with a port, another destination than the origin. */
  readonly host?: string;
  /** Short idle timeouts, so that silence is ended soon. */
  readonly isImpatient?: boolean;
};

/** The state of the client's connection: reusable, closed after a complete response, or cut within a response. */
export type ClientEnd = 'open' | 'ended' | 'cut';

export type OriginExpectation = {
  /**
   * What the client read: these bytes, a refusal of the proxy, or, where bytes are in transit at the cut, a prefix of
   * these bytes.
   */
  readonly client: Bytes | { readonly refused: string } | { readonly within: Bytes };
  /** `open` by default. */
  readonly end?: ClientEnd;
  /** Whether the next request reached the host on the same connection; `fresh` by default. */
  readonly host?: 'reused' | 'fresh';
  /** Members of the record of the first exchange. */
  readonly record: Readonly<Record<string, unknown>>;
  /** The number of requests at the host, if it is not one for each request of the client. */
  readonly arrivals?: number;
  /** The body that the host read from the first request. */
  readonly body?: string;
  /** The host sends the secret in a place that is not masked (SECURITY.md, Limits). */
  readonly isLeakDocumented?: boolean;
};

export type OriginRow = AttackRow<OriginScript, OriginExpectation>;

export function expand(bytes: Bytes): string {
  if (typeof bytes === 'string') return bytes;
  return bytes.map((part) => (typeof part === 'string' ? part : part.repeat.repeat(part.times))).join('');
}

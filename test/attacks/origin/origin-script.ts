// What a row of stage `origin` says: a client that behaves, a host that does not, and what the client must have read.
// Bytes are strings of latin1; `{HOST}` stands for the authority of the tunnel, `{ELSEWHERE}` for the port of another
// origin, at which nothing may ever arrive. It knows no proxy.
import type { AttackRow } from '../row.ts';

/** Bytes; a list is its parts one behind the other, so that a megabyte need not be written out. */
export type Bytes = string | readonly (string | { readonly repeat: string; readonly times: number })[];

export type OriginStep =
  | { readonly send: Bytes }
  /** Every byte in a write of its own. */
  | { readonly drip: Bytes }
  /** The same bytes until the connection is gone. */
  | { readonly flood: string }
  /** Waits until these bytes have come behind the request's head. */
  | { readonly through: string }
  /** Waits for the request's body. */
  | 'body'
  /** Lets the client send the next segment of its request. */
  | 'go'
  /** Waits until the client has read every answer that it waits for. */
  | 'responded'
  /** Waits until the other side has ended or broken the connection. */
  | 'closed'
  | 'end'
  | 'reset';

export type OriginScript = {
  /** Segments; the next one leaves at a `go`. A plain GET if left out. */
  readonly request?: readonly string[];
  /** Answers that the client waits for (1). */
  readonly reads?: number;
  /** Plain exchanges before it, on the same two connections (0). */
  readonly before?: number;
  /** What the host does with the request; every later one it answers plainly. */
  readonly response: readonly OriginStep[];
  /** The client leaves once it has read so many bytes. */
  readonly leavesAfter?: number;
  /** Another name in the CONNECT than `api.test`; with a port, at another place than the origin. */
  readonly host?: string;
  /** The limits of silence are short, so that they end what is silent. */
  readonly isImpatient?: boolean;
};

/** How the client finds its connection: to be used again, ended in order, or cut within an answer. */
export type ClientEnd = 'open' | 'ended' | 'cut';

export type OriginExpectation = {
  /**
   * What the client read: these bytes, a refusal of ours, or, where the cut meets bytes under way, as much of these as
   * came before it.
   */
  readonly client: Bytes | { readonly refused: string } | { readonly within: Bytes };
  /** `open` if left out. */
  readonly end?: ClientEnd;
  /** Whether the next request came to the host by the same connection; `fresh` if left out. */
  readonly host?: 'reused' | 'fresh';
  /** Members of the record of the attacked exchange. */
  readonly record: Readonly<Record<string, unknown>>;
  /** Requests that the host saw, where they are not one for each that the client sent. */
  readonly arrivals?: number;
  /** What the host read as the body of the attacked request. */
  readonly body?: string;
  /** The host put the secret where nothing is masked (SECURITY.md, Limits). */
  readonly isLeakDocumented?: boolean;
};

export type OriginRow = AttackRow<OriginScript, OriginExpectation>;

export function expand(bytes: Bytes): string {
  if (typeof bytes === 'string') return bytes;
  return bytes.map((part) => (typeof part === 'string' ? part : part.repeat.repeat(part.times))).join('');
}

// The script of a row of the stage `load`: how many clients act concurrently, through which entry point, with which steps.
import type { AttackRow } from '../row.ts';

/**
 * `plain` is the proxy port; `opened` an open tunnel to a host with rules; `inside` the same with TLS in it; `blind` a
 * tunnel to a host without a rule.
 */
export type EntryPoint = 'plain' | 'opened' | 'inside' | 'blind';

/** A pair is a piece and its number of repetitions. */
export type Bytes = readonly (string | readonly [piece: string, count: number])[];

/**
 * Bytes are latin1. `<API>` is the authority of the host with a rule, `<BLIND>` of one without, `<HOST:name>` a name with
 * the port of `<API>`, `<N>` the number of the client, `<HELLO>` a ClientHello for `<API>`.
 */
export type LoadStep =
  | { readonly send: Bytes }
  /** Repeated until the connection ends. */
  | { readonly drip: Bytes; readonly pauseMs: number }
  /** Waits until this number of responses has arrived. */
  | { readonly await: number }
  /** Waits until a host has the head of this client's request. */
  | { readonly arrived: true }
  | { readonly stop: 'reading' }
  /** Blocks the record sink for all clients until the last step of all. */
  | { readonly sink: 'blocked' }
  | { readonly leave: 'FIN' | 'RST' };

export type LoadScript = {
  /** `tight`: limits and timeouts so small that they are reached at once. The defaults otherwise. */
  readonly at?: 'tight';
  readonly entryPoint: EntryPoint;
  /** The host of the tunnel, `api.test` by default; `<N>` is the number of the client. */
  readonly host?: string;
  readonly clients: number;
  /** Clients do not wait for each other. After the last step each waits until its connection ends. */
  readonly steps: readonly LoadStep[];
};

export type LoadExpectation = {
  /** The responses of a client in order, with the number of clients that got them; absent if a reset may overtake them. */
  readonly responses?: Readonly<Record<string, number>>;
  /** `METHOD target bytes-of-body` of each request at a host; `cut` for a body without its end. */
  readonly arrived?: Readonly<Record<string, number>>;
  /** `outcome reason` of the records of the clients. */
  readonly records: Readonly<Record<string, number>>;
};

export type LoadRow = AttackRow<LoadScript, LoadExpectation>;

/** A request in origin form, for a client inside a tunnel. */
export function inside(line: string, fields: readonly string[] = [], host = '<API>'): string {
  return `${[`${line} HTTP/1.1`, `Host: ${host}`, ...fields].join('\r\n')}\r\n\r\n`;
}

export function connectTo(authority: string): string {
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`;
}

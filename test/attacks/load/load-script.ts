// What a row of the stage `load` says: how many clients do the same at once, through which door, and what becomes of each.
import type { AttackRow } from '../row.ts';

/**
 * `plain` is the proxy port; `opened` a tunnel to a host with rules, answered 200; `inside` the same with TLS in it; `blind`
 * a tunnel to a host of no rule.
 */
export type Entry = 'plain' | 'opened' | 'inside' | 'blind';

/** A pair is a piece and how often it comes. */
export type Bytes = readonly (string | readonly [piece: string, count: number])[];

/**
 * Bytes are latin1. `<API>` is the authority of the host with a rule, `<BLIND>` that of one without, `<HOST:name>` a name at
 * the first one's port, `<N>` the number of the client, `<HELLO>` a ClientHello for the first.
 */
export type LoadStep =
  | { readonly send: Bytes }
  /** Again and again, until the connection ends. */
  | { readonly drip: Bytes; readonly pauseMs: number }
  /** So many answers have come. */
  | { readonly await: number }
  /** The host has got the head of this client's request. */
  | { readonly arrived: true }
  | { readonly stop: 'reading' }
  /** The sink of records takes nothing from here on, for any client; freed behind the last step of all. */
  | { readonly sink: 'blocked' }
  | { readonly leave: 'FIN' | 'RST' };

export type LoadScript = {
  /** `tight`: limits and times so small that they are reached at once. Else the defaults. */
  readonly at?: 'tight';
  readonly entry: Entry;
  /** Of the tunnel, `api.test` without it; `<N>` is the number of the client. */
  readonly host?: string;
  readonly clients: number;
  /** One does not wait for another. After the last step each waits until its connection ends. */
  readonly steps: readonly LoadStep[];
};

export type LoadExpectation = {
  /** What each client was answered, in order, and how many were answered that; left out where a reset may overtake it. */
  readonly responses?: Readonly<Record<string, number>>;
  /** `METHOD target bytes-of-body` of what came to a host; `cut` for a body without its end. */
  readonly arrived?: Readonly<Record<string, number>>;
  /** `outcome reason` of the records that the clients left. */
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

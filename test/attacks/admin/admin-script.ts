// A row of the corpus `admin`: bytes on a connection to the admin port (or to the proxy's), and the expected response.
import type { AttackRow } from '../row.ts';

export type AdminScript = {
  readonly entry?: 'proxy';
  /**
   * Bytes as latin1; a pair is a piece and how often it is sent. The next turn follows the response to the one before.
   * `<TOKEN>` is the admin token, `<A>` and `<B>` credentials of two sandboxes for the proxy, `<TOKEN-A>` the token in
   * the first of them, `<ADMIN>` and `<ORIGIN>` ports.
   */
  readonly turns: readonly (readonly (string | readonly [piece: string, count: number])[])[];
  /** What the client does after its last turn; else it waits for all responses. */
  readonly leaves?: 'FIN' | 'RST';
};

export type Expectation = {
  /** Of every response, in order. */
  readonly statuses: readonly number[];
  /** Of the records of the admin API: status and reason. */
  readonly records?: readonly string[];
  /** The whole bodies of the responses. */
  readonly bodies?: readonly string[];
  /** The connection ends after the last response. */
  readonly ends?: true;
  /** Values of X-Key that arrived at the origin. */
  readonly arrived?: readonly string[];
  /** The code in the response of the proxy. */
  readonly code?: string;
};

export type AdminRow = AttackRow<AdminScript, Expectation>;

/** A request from its lines; a body adds its length. */
export function request(line: string, fields: readonly string[], body?: string): string {
  const framing = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body, 'latin1')}`];
  return `${[`${line} HTTP/1.1`, ...fields, ...framing].join('\r\n')}\r\n\r\n${body ?? ''}`;
}

export const HOST = 'Host: localhost';
export const BEARER = 'Authorization: Bearer <TOKEN>';
export const JSON_TYPE = 'Content-Type: application/json';

/** One request, one response. */
export function adminRow(
  id: AdminRow['id'],
  bytes: string,
  status: number,
  record?: string,
  more: Partial<Expectation> = {},
): AdminRow {
  return {
    id,
    script: { turns: [[bytes]] },
    expect: { statuses: [status], ...(record === undefined ? {} : { records: [record] }), ...more },
  };
}

// The language of the `message` rows: HTTP/1.1 requests as bytes, through two entry points.
//
// How to write a row:
//   { id: 'F-03 two-lengths', script: { on: both, send: post('/x', ['Content-Length: 1', 'Content-Length: 2'], 'ab') },
//     expect: refused(400, 'malformed_request') }
// `on`: the entry points. `plain` is the proxy port, with absolute-form and a plaintext origin that the operator listed in
//   `inject_cleartext`; `tunnel` is an intercepted tunnel to the same name over TLS.
// `send`: latin1 bytes in one write, or a list of writes with steps between them (`Step`).
// Placeholders, in `send` and in the expectation: {AT} the prefix of the path at that entry point (`http://api.test:PORT`
//   or nothing), {HOST} `api.test:PORT`, {PORT}, {EVIL} and {EVIL_PORT} another host on another address without a rule,
//   {AUTH} the line that the policy injects, {SECRET} its secret.
// `policy`: a name of message-policies.ts.
// Paths with a meaning for the origin: `/ws…` accepts an upgrade with 101, `/early…` responds before it reads the body,
//   `/declines…` responds with 401 in the same way, `/silent…` never sends 100. Every other path gets a 200 with
//   `METHOD target` as the body.
import type { AttackRow } from '../row.ts';
import type { PolicyName } from './message-policies.ts';

export type EntryPoint = 'plain' | 'tunnel';
export const both: readonly EntryPoint[] = ['plain', 'tunnel'];

export type Step =
  /** Waits until the head of another request has arrived at an origin. */
  | { readonly wait: 'arrival' }
  /** Waits until another response was read; interim responses count. */
  | { readonly wait: 'response' }
  | { readonly leave: 'fin' | 'rst' };

export type MessageScript = {
  readonly policy?: PolicyName;
  readonly on: readonly EntryPoint[];
  readonly send: string | readonly (string | Step)[];
};

/** A complete request at an origin. */
export type ExpectedArrival = {
  /** Request line and field lines, in order, byte for byte. */
  readonly head: readonly string[];
  /** Its content, without chunk heads. */
  readonly body: string;
  readonly framing: 'none' | 'length' | 'chunked';
};

export type ExpectedResponse = {
  readonly status: number;
  /** X-Sallyport-Error. */
  readonly code?: string;
  /** The default for a 200 without a code is `METHOD target` of its request. */
  readonly body?: string;
};

export type MessageExpectation = {
  /** The requests that arrive, in order; no other may arrive. */
  readonly arrivals: readonly ExpectedArrival[];
  readonly responses: readonly ExpectedResponse[];
  /** The proxy closes the connection after the last response. */
  readonly ends?: true;
  /** One more head may reach the origin; its request must never be completed. */
  readonly mayBegin?: true;
  /** No two of the requests may arrive on the same connection. */
  readonly apart?: true;
  /** Sent bytes that must not reach any origin. */
  readonly unseen?: readonly string[];
  /** `outcome reason` of each record, if it does not follow from the responses. */
  readonly records?: readonly string[];
  /** The bytes after the last response, on an upgraded connection. */
  readonly rest?: string;
};

export type MessageRow = AttackRow<MessageScript, MessageExpectation>;

/** A request with a matching Host. */
export function request(start: string, fields: readonly string[] = [], body = ''): string {
  const [method = '', path = ''] = start.split(' ');
  return [`${method} {AT}${path} HTTP/1.1`, 'Host: {HOST}', ...fields, '', body].join('\r\n');
}

export function post(path: string, fields: readonly string[] = [], body = ''): string {
  return request(`POST ${path}`, fields, body);
}

/** A chunked POST to `/x`. */
export function chunked(body: string, fields: readonly string[] = []): string {
  return post('/x', ['Transfer-Encoding: chunked', ...fields], body);
}

/** The same request at the origin, injected. */
export function arrival(
  start: string,
  fields: readonly string[] = [],
  body = '',
  framing: ExpectedArrival['framing'] = body === '' ? 'none' : 'length',
): ExpectedArrival {
  return { head: [`${start} HTTP/1.1`, 'Host: {HOST}', ...fields, '{AUTH}'], body, framing };
}

export function accepted(...arrivals: readonly ExpectedArrival[]): MessageExpectation {
  return { arrivals, responses: arrivals.map(() => ({ status: 200 })) };
}

/** Refused before anything is sent, and the connection is closed. */
export function refused(status: number, code: string): MessageExpectation {
  return { arrivals: [], responses: [{ status, code }], ends: true };
}

/** Refused by the parser or for its framing. */
export const malformed: MessageExpectation = refused(400, 'malformed_request');

/** `[kebab-name, bytes, expectation]` as rows of one class, at both entry points. */
export function rowsOf(
  classId: string,
  table: readonly (readonly [name: string, send: MessageScript['send'], expect: MessageExpectation])[],
  more: Partial<MessageScript> = {},
): readonly MessageRow[] {
  return table.map(([name, send, expect]) => ({
    id: `${classId} ${name}`,
    script: { on: both, ...more, send },
    expect,
  }));
}

// The language of the `message` rows: HTTP/1.1 requests as bytes, at two doors. It plays nothing.
//
// How to write a row:
//   { id: 'F-03 two-lengths', script: { on: both, send: post('/x', ['Content-Length: 1', 'Content-Length: 2'], 'ab') },
//     expect: refused(400, 'malformed_request') }
// `on`: the doors at which it is tried. `plain` is the proxy port, with absolute-form and an origin in clear that the
//   operator listed in `inject_cleartext`; `tunnel` is an intercepted tunnel to the same name over TLS.
// `send`: bytes as latin1, in one write, or a list of writes and of steps between them (`Step`).
// Placeholders, in `send` and in what is expected: {AT} what stands before the path at that door (`http://api.test:PORT`
//   or nothing), {HOST} `api.test:PORT`, {PORT}, {EVIL} and {EVIL_PORT} another host, which listens on another address and that no
//   rule names, {AUTH} the line that the default policy injects, {SECRET} its secret.
// `policy`: a name of message-policies.ts; what a policy injects stands in its `{AUTH}`.
// Paths with a meaning for the origin: `/ws…` answers an upgrade with 101, `/early…` answers before it reads the body,
//   `/declines…` answers 401 so, `/silent…` never says 100. All others answer 200 with `METHOD target` as the body.
import type { AttackRow } from '../row.ts';
import type { PolicyName } from './message-policies.ts';

export type Entry = 'plain' | 'tunnel';
export const both: readonly Entry[] = ['plain', 'tunnel'];

export type Step =
  /** Until the head of a further request is at an origin. */
  | { readonly wait: 'arrival' }
  /** Until a further answer has been read, interim ones too. */
  | { readonly wait: 'response' }
  | { readonly leave: 'fin' | 'rst' };

export type MessageScript = {
  readonly policy?: PolicyName;
  readonly on: readonly Entry[];
  readonly send: string | readonly (string | Step)[];
};

/** A whole request at an origin. */
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
  /** Default of a 200 without code: `METHOD target` of the request it answers. */
  readonly body?: string;
};

export type MessageExpectation = {
  /** What arrives, in order; nothing else does. */
  readonly arrivals: readonly ExpectedArrival[];
  readonly responses: readonly ExpectedResponse[];
  /** The proxy ends the connection behind the last answer by itself. */
  readonly ends?: true;
  /** One more head may be at the origin, whose request must never become whole. */
  readonly mayBegin?: true;
  /** No two of the requests come by the same connection. */
  readonly apart?: true;
  /** Bytes of what was sent that no origin may see in any form. */
  readonly unseen?: readonly string[];
  /** `outcome reason` of each record, where the answers do not say it. */
  readonly records?: readonly string[];
  /** Bytes behind the last answer: of an upgraded connection. */
  readonly rest?: string;
};

export type MessageRow = AttackRow<MessageScript, MessageExpectation>;

/** A request with a Host that agrees. */
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

/** Refused before anything left, and the connection ends. */
export function refused(status: number, code: string): MessageExpectation {
  return { arrivals: [], responses: [{ status, code }], ends: true };
}

/** Refused by the parser or for its framing. */
export const malformed: MessageExpectation = refused(400, 'malformed_request');

/** `[kebab-name, bytes, expectation]` as rows of one class, at both doors. */
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

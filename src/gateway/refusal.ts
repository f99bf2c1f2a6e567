// The closed catalogue of the gateway's own responses: code, status, public text. The cause goes to the log, never to the
// client.
import { STATUS_CODES } from 'node:http';
import { errorResponse, jsonResponse, retryAfter } from '../base/http/http-response.ts';
import type { HeadError } from '../http1/head-error.ts';
import { buildHead } from '../http1/head-writer.ts';

const catalogue = {
  preflight: [200, 'The request may be sent'],
  see_other: [303, 'The response is at the Location'],
  malformed_request: [400, 'The request is malformed'],
  target_not_ready: [400, 'The state of the target does not allow this'],
  target_form_refused: [400, 'The request target must be a path that begins with a slash'],
  host_invalid: [400, 'Exactly one valid Host is required'],
  unauthenticated: [401, 'Authentication is required'],
  forbidden: [403, 'Access to this target is denied'],
  target_not_found: [404, 'No target has this name'],
  method_refused: [405, 'This method is not forwarded'],
  request_timeout: [408, 'The request did not arrive in time'],
  uri_too_long: [414, 'The request target is too long'],
  expectation_failed: [417, 'Only Expect: 100-continue is supported'],
  misdirected: [421, 'This gateway does not serve this target'],
  invalid_input: [422, 'The request is invalid'],
  too_many_requests: [429, 'Too many requests'],
  head_too_large: [431, 'The request head is too large'],
  internal_error: [500, 'Internal error'],
  not_supported: [501, 'The target does not support this'],
  transfer_coding_refused: [501, 'Transfer-Encoding must be exactly chunked'],
  target_unreachable: [502, 'The target cannot be reached'],
  target_closed: [502, 'The target closed the connection without a response'],
  target_response_invalid: [502, 'The target sent an invalid response'],
  too_many_connections: [503, 'Too many connections'],
  draining: [503, 'The gateway is shutting down'],
  overloaded: [503, 'Too many requests wait to be decided'],
  target_unavailable: [503, 'The target is not available now'],
  decision_timeout: [504, 'Whether this request may be forwarded could not be decided in time'],
  target_timeout: [504, 'The target did not respond in time'],
  version_refused: [505, 'Only HTTP/1.0 and HTTP/1.1 are supported'],
} as const;

export type RefusalCode = keyof typeof catalogue;

export class Refusal {
  readonly code: RefusalCode;
  readonly status: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
  /** What the owner of the gateway calls it. */
  readonly name: string | undefined;

  constructor(
    code: RefusalCode,
    message: string,
    fields: Readonly<Record<string, string>>,
    name: string | undefined,
  ) {
    this.code = code;
    this.status = catalogue[code][0];
    this.message = message;
    this.fields = fields;
    this.name = name;
  }
}

/** The JSON body of a refusal; the owner of the gateway may have a format of its own. */
export type WriteRefusal = (refusal: Refusal) => object;

export type RefusalDetails = {
  /** Replaces the text of the catalogue; must be one of our own sentences, never input. */
  readonly message?: string;
  /** Sent as Retry-After. */
  readonly retryAfterMs?: number;
  /** The value of WWW-Authenticate, of a 401. */
  readonly challenge?: string;
  /** For a format of the owner. */
  readonly name?: string;
  /** Besides those of every refusal; no value is input that was not checked for line ends. */
  readonly fields?: Readonly<Record<string, string>>;
};

export function refuse(code: RefusalCode, details: RefusalDetails = {}): Refusal {
  const { message = catalogue[code][1], retryAfterMs, challenge, name } = details;
  const fields = {
    ...details.fields,
    ...(retryAfterMs === undefined ? {} : retryAfter(retryAfterMs)),
    ...(challenge === undefined ? {} : { 'WWW-Authenticate': challenge }),
    ...(code === 'method_refused' ? { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } : {}),
  };
  return new Refusal(code, message, fields, name);
}

/** The refusal for an error of the parser, whose text is fixed and safe to show. */
export function refusalOfHead({ code, status, text }: HeadError): Refusal {
  if (code === 'method_too_long') return refuse('method_refused');
  const refused = codes[status];
  return refused === undefined ? refuse('malformed_request', { message: text }) : refuse(refused);
}

const codes: Readonly<Partial<Record<number, RefusalCode>>> = {
  414: 'uri_too_long',
  417: 'expectation_failed',
  431: 'head_too_large',
  501: 'transfer_coding_refused',
  505: 'version_refused',
};

/** Every code with its status and text, for documents and the test that pins them. */
export function refusalCatalogue(): readonly { code: string; status: number; message: string }[] {
  return Object.entries(catalogue).map(([code, [status, message]]) => ({ code, status, message }));
}

export type RefusalAbout = {
  readonly method: string;
  readonly isLast: boolean;
  /** Of the target, as far as it is known. */
  readonly fields?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly write?: WriteRefusal | undefined;
};

/** The parts of a refusal. `X-Sallyport-Error` distinguishes it from a response of the target. */
export function refusalParts(
  refusal: Refusal,
  { isLast, fields: added = [], write }: Omit<RefusalAbout, 'method'>,
): { fields: [string, string][]; body: string } {
  const { status, code, message } = refusal;
  const { fields, body } =
    write === undefined
      ? errorResponse(status, code, message, refusal.fields)
      : jsonResponse(status, write(refusal), refusal.fields);
  const text = String(body);
  const own: [string, string][] = [
    ...Object.entries(fields ?? {}),
    ['Content-Length', String(Buffer.byteLength(text))],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Sallyport-Error', code],
    ...added.map(([name, value]): [string, string] => [name, value]),
  ];
  return { fields: isLast ? [...own, ['Connection', 'close']] : own, body: text };
}

/** The refusal as HTTP/1.1 bytes. HEAD gets no body. */
export function refusalBytes(refusal: Refusal, options: RefusalAbout): Buffer {
  const { fields, body } = refusalParts(refusal, options);
  const head = buildHead(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}`, fields);
  return options.method === 'HEAD' ? head : Buffer.concat([head, Buffer.from(body)]);
}

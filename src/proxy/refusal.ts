// The refusals of the closed catalogue, the responses that Sallyport sends of its own: code, status, public text.
// The cause of a refusal goes to the record, never to the client, because error texts are where proxies leak addresses,
// details of upstreams and secrets.
import { buildHead } from '../http1/head-writer.ts';
import { catalogue, type RefusalEntry } from './refusal-catalogue.ts';

export type RefusalCode = keyof typeof catalogue;

/** What the client reads; `cause` is only for the record. */
export type Refusal = {
  readonly refused: RefusalCode;
  readonly status: number;
  readonly message: string;
  readonly hint: string | undefined;
  readonly cause: string | undefined;
};

/** The class of every refusal: `instanceof` costs less than looking up a property in objects of many shapes. */
class CataloguedRefusal implements Refusal {
  readonly refused: RefusalCode;
  readonly status: number;
  readonly message: string;
  readonly hint: string | undefined;
  readonly cause: string | undefined;

  constructor(
    refused: RefusalCode,
    status: number,
    message: string,
    hint: string | undefined,
    cause: string | undefined,
  ) {
    this.refused = refused;
    this.status = status;
    this.message = message;
    this.hint = hint;
    this.cause = cause;
  }
}

/** Creates a refusal. `hint` replaces that of the catalogue and must be one of our own sentences, never input. */
export function refuse(code: RefusalCode, cause?: string, hint?: string): Refusal {
  const [status, message, fixedHint] = catalogue[code];
  return new CataloguedRefusal(code, status, message, hint ?? fixedHint, cause);
}

export function isRefusal(value: object): value is Refusal {
  return value instanceof CataloguedRefusal;
}

/** Every code with its status and message, for the documentation and the test that pins them. */
export function refusalCatalogue(): readonly { code: string; status: number; message: string }[] {
  return Object.entries(catalogue).map(([code, [status, message]]) => ({ code, status, message }));
}

/** The public texts of a code; undefined if the catalogue does not have it. */
export function explainRefusal(
  code: string,
): { readonly message: string; readonly hint: string | undefined } | undefined {
  const entry = Object.entries<RefusalEntry>(catalogue).find(([known]) => known === code)?.[1];
  return entry && { message: entry[1], hint: entry[2] };
}

const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  407: 'Proxy Authentication Required',
  408: 'Request Timeout',
  414: 'URI Too Long',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};

/**
 * The refusal as HTTP/1.1 bytes: `X-Sallyport-Error` and a JSON body `{error, message, hint}`.
 * `method` HEAD gets no body; `close` says whether the connection ends after it. To a CONNECT the reason phrase is the
 * code, because clients show it and discard the body.
 */
export function refusalBytes(refusal: Refusal, options: { method: string; close: boolean }): Buffer {
  const { status } = refusal;
  const { fields, body } = refusalParts(refusal);
  const connection: RefusalParts['fields'] = options.close ? [['Connection', 'close']] : [];
  const phrase = options.method === 'CONNECT' ? refusal.refused : (PHRASES[status] ?? 'Error');
  const head = buildHead(`HTTP/1.1 ${status} ${phrase}`, [...fields, ...connection]);
  return options.method === 'HEAD' ? head : Buffer.concat([head, body]);
}

const FORWARDED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

export type RefusalParts = {
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
};

/** The fields and the body of a refusal, the same in every version of HTTP. */
export function refusalParts({ refused: error, status, message, hint }: Refusal): RefusalParts {
  const body = Buffer.from(`${JSON.stringify({ error, message, ...(hint ? { hint } : {}) })}\n`);
  const fields: [string, string][] = [
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['X-Sallyport-Error', error],
    ['Cache-Control', 'no-store'],
  ];
  if (status === 407) fields.push(['Proxy-Authenticate', 'Basic realm="sallyport", charset="UTF-8"']);
  if (status === 405) fields.push(['Allow', error === 'reserved_method' ? 'GET, HEAD' : FORWARDED_METHODS]);
  if (status === 429) fields.push(['Retry-After', '1']);
  return { fields, body };
}

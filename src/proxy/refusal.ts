// The closed catalogue of refusals, the responses that Sallyport sends of its own: code, status, public text.
// The texts are fixed. The cause of a refusal goes to the record, never to the client, because error texts are where
// proxies leak addresses, details of upstreams and secrets.
import { buildHead } from '../http1/head-writer.ts';

type Entry = readonly [status: number, message: string, hint?: string];

const catalogue = {
  malformed_request: [400, 'the request is not valid HTTP/1.1'],
  authority_invalid: [
    400,
    'the host or port of the request is not valid',
    'send host:port, with a port from 1 to 65535',
  ],
  host_invalid: [400, 'the request must have exactly one valid Host field'],
  host_mismatch: [400, 'the Host field and the request target name different hosts'],
  target_invalid: [400, 'the request target is not valid on this connection'],
  use_connect: [
    400,
    'requests for https:// targets must use a CONNECT tunnel',
    'set HTTPS_PROXY, so that the client sends CONNECT',
  ],
  not_a_proxy_request: [
    400,
    'this is a forward proxy, and the request is not a proxy request',
    'set HTTP_PROXY and HTTPS_PROXY to this address',
  ],
  tls_at_proxy_port: [
    400,
    'the client speaks TLS to the proxy port, which expects HTTP without TLS',
    'begin the proxy URL with http://, in HTTPS_PROXY too',
  ],
  socks_at_proxy_port: [
    400,
    'the client speaks SOCKS to the proxy port, which expects HTTP',
    'begin the proxy URL with http:// instead of socks5://',
  ],
  ambiguous_path: [
    400,
    'the path can be read in more than one way',
    'send the path without dot segments or nested percent-encoding',
  ],
  access_denied: [403, 'access_control of this sandbox does not allow the host'],
  client_denied: [
    403,
    'this client address may not use the proxy',
    'the operator can allow the address with allow_clients',
  ],
  port_denied: [
    403,
    'the port is not allowed for this host',
    'the operator can allow the port with egress.ports; a tenant can list host:port in allow_list',
  ],
  address_denied: [403, 'the host resolves to an address that this proxy never connects to'],
  address_private: [
    403,
    'the host resolves to a private address',
    'the operator can allow the address with egress.allow_private',
  ],
  cleartext_refused: [
    403,
    'credentials are not sent over http://',
    'use https://, or let the operator list the destination in inject_cleartext',
  ],
  reserved_host: [
    403,
    'this name is reserved for the proxy itself, which serves it over http:// only',
    'request it with http:// through the proxy (HTTP_PROXY), without CONNECT',
  ],
  reserved_path: [
    404,
    'the proxy serves nothing at this path of its reserved host',
    'the paths are /, /status, /env, /ca.pem and /ca-bundle.pem',
  ],
  method_refused: [405, 'the method is not allowed through this proxy'],
  reserved_method: [405, 'the reserved host of the proxy accepts GET and HEAD only'],
  proxy_auth_required: [
    407,
    'proxy authentication failed: the token is missing or wrong',
    'use http://sallyport:TOKEN@host:port as the proxy URL',
  ],
  request_timeout: [408, 'the request did not arrive in time'],
  uri_too_long: [414, 'the request target is too long'],
  expectation_failed: [417, 'the only supported expectation is 100-continue'],
  authority_mismatch: [421, 'the request is for another host or port than its CONNECT tunnel'],
  too_many_requests: [
    429,
    'too many requests to the proxy itself',
    'a client gets 10 responses a second: send the request again after Retry-After',
  ],
  head_too_large: [431, 'the request head is too large'],
  internal_error: [500, 'internal error of the proxy'],
  transfer_coding_refused: [501, 'the only supported transfer coding is chunked'],
  callback_failed: [502, 'callback resolution failed'],
  dns_failed: [502, 'the host could not be resolved'],
  upstream_unreachable: [502, 'the upstream could not be reached'],
  upstream_untrusted: [
    502,
    'the TLS certificate of the upstream is not trusted',
    'the operator can add its CA with SALLYPORT_UPSTREAM_CA; the record of the request names the cause',
  ],
  client_certificate_required: [
    502,
    'the upstream asks for a TLS client certificate, which this proxy does not have, and has ended the connection',
    'remove the host from match_hosts of rules and callbacks: its TLS is then that of the client, client certificate included',
  ],
  upstream_closed: [502, 'the upstream closed the connection without a response'],
  upstream_malformed: [502, 'the response of the upstream is not valid HTTP/1.1'],
  upstream_asks_proxy_auth: [502, 'the upstream asked for proxy credentials'],
  scrub_impossible: [
    502,
    'the response of the upstream cannot be searched for secrets',
    '`scrub: body` is set for this host: its responses must be complete and without a content encoding',
  ],
  alpn_changed: [502, 'the upstream does not speak HTTP/1.1', 'connect again and offer h2 by ALPN too'],
  h2_unavailable: [502, 'the upstream does not speak HTTP/2', 'connect again and offer http/1.1 by ALPN too'],
  too_many_connections: [503, 'too many connections'],
  record_sink_blocked: [503, 'the record of this request could not be written'],
  rules_changed: [503, 'the rules changed while the request was waiting', 'send the request again'],
  shutting_down: [503, 'the proxy is shutting down'],
  upstream_timeout: [504, 'the upstream did not respond in time'],
  version_refused: [505, 'the only supported versions are HTTP/1.0 and HTTP/1.1'],
} as const satisfies Readonly<Record<string, Entry>>;

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
  const entry = Object.entries<Entry>(catalogue).find(([known]) => known === code)?.[1];
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
 * `method` HEAD gets no body; `close` says whether the connection ends after it.
 */
export function refusalBytes(refusal: Refusal, options: { method: string; close: boolean }): Buffer {
  const { status } = refusal;
  const { fields, body } = refusalParts(refusal);
  const connection: RefusalParts['fields'] = options.close ? [['Connection', 'close']] : [];
  const head = buildHead(`HTTP/1.1 ${status} ${PHRASES[status] ?? 'Error'}`, [...fields, ...connection]);
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

// The rows of the HTTP/2 attacks T-02 to T-07: one request each, what a client sends and what must become of it. What is
// refused never reaches the origin; what is accepted reaches it as it stands here. `{authority}` and `{port}` are those
// of the tunnel.
import type { ErrorName } from '../support/h2-frames.ts';
import type { SentField } from '../support/hpack.ts';

type Pair = readonly [name: string, value: string];
type Pseudo = Readonly<Record<string, string | undefined>>;
export type Verdict =
  /** Refused by us: the status, and the code in `x-sallyport-error`. */
  | { readonly answered: readonly [status: number, code: string] }
  /** Refused by the protocol (RFC 9113 §8.1.1). */
  | { readonly reset: ErrorName }
  /** The connection ends. */
  | { readonly lost: true }
  /** All that arrives, in order. */
  | { readonly arrives: readonly Pair[] };
export type RequestMore = {
  readonly body?: string;
  readonly trailers?: readonly SentField[];
  /** The origin may see the stream, if it then sees it broken off. */
  readonly mayBegin?: true;
};
export type RequestRow = RequestMore & {
  readonly attack: string;
  readonly what: string;
  /** Instead of GET, https, the tunnel's authority and /row; undefined leaves one out. */
  readonly pseudo: Pseudo;
  readonly extra: readonly SentField[];
  readonly verdict: Verdict;
};
type Line = readonly [what: string, pseudo: Pseudo, extra: readonly SentField[], Verdict, RequestMore?];

function rows(attack: string, lines: readonly Line[]): readonly RequestRow[] {
  return lines.map(([what, pseudo, extra, verdict, more]) => ({
    attack,
    what,
    pseudo,
    extra,
    verdict,
    ...more,
  }));
}

function pseudoOf(changed: Readonly<Record<string, string>>): readonly Pair[] {
  const first = { ':method': 'GET', ':scheme': 'https', ':authority': '{authority}', ':path': '/row' };
  return Object.entries({ ...first, ...changed });
}

function arrives(fields: readonly Pair[] = [], pseudo: Readonly<Record<string, string>> = {}): Verdict {
  return { arrives: [...pseudoOf(pseudo), ...fields, ['authorization', 'Bearer sesame-open-now']] };
}

const reset: Verdict = { reset: 'PROTOCOL_ERROR' };
const lost: Verdict = { lost: true };
const refused = (status: number, code: string): Verdict => ({ answered: [status, code] });
const post = { ':method': 'POST' } as const;

const t02 = rows('T-02', [
  ['host says what :authority says', {}, [['host', '{authority}']], arrives()],
  ['host says it in capitals', {}, [['host', 'API.TEST:{port}']], arrives()],
  ['host alone', { ':authority': undefined }, [['host', '{authority}']], arrives()],
  ['host names another', {}, [['host', 'other.test']], refused(400, 'host_mismatch')],
  ['host names another port', {}, [['host', 'api.test:1']], refused(400, 'host_mismatch')],
  ['host is empty', {}, [['host', '']], reset],
  [
    'two hosts that agree',
    {},
    [
      ['host', '{authority}'],
      ['host', '{authority}'],
    ],
    reset,
  ],
  ['another name', { ':authority': 'other.test:{port}' }, [], refused(421, 'authority_mismatch')],
  ['another port', { ':authority': 'api.test:1' }, [], refused(421, 'authority_mismatch')],
  ['no port', { ':authority': 'api.test' }, [], refused(421, 'authority_mismatch')],
  ['userinfo', { ':authority': 'user@api.test:{port}' }, [], reset],
  ['neither', { ':authority': undefined }, [], reset],
  ['an empty :authority', { ':authority': '' }, [], reset],
  ['two of :authority', {}, [[':authority', '{authority}']], reset],
  ['a list of two', { ':authority': '{authority},other.test' }, [], refused(400, 'host_invalid')],
]);

// What is no field at all nghttp2 drops without a word: no rule and no host sees a byte of it.
const t03 = rows('T-03', [
  ['a colon in a name', {}, [['x:a', '1']], arrives()],
  ['a space in a name', {}, [['x a', '1']], arrives()],
  ['a space behind an injected name', {}, [['authorization ', 'mine']], arrives()],
  ['a NUL in an injected name', {}, [['authori\0zation', 'mine']], arrives()],
  ['an empty name', {}, [['', '1']], arrives()],
  ['a name beyond ASCII', {}, [['x-\xe9', '1']], arrives()],
  ['CR LF in a value', {}, [['x-a', '1\r\nauthorization: mine']], arrives()],
  ['LF in a value', {}, [['x-a', '1\nx-b: 2']], arrives()],
  ['CR in a value', {}, [['x-a', '1\rx-b: 2']], arrives()],
  ['NUL in a value', {}, [['x-a', '1\x002']], arrives()],
  ['spaces around a value', {}, [['x-a', ' 1 ']], arrives()],
  [
    'the injected name, twice',
    {},
    [
      ['authorization', 'mine'],
      ['authorization', 'too'],
    ],
    arrives(),
  ],
  ['an underscore in a name', {}, [['x_a', '1']], arrives([['x_a', '1']])],
  ['a value of obs-text', {}, [['x-a', '\xfc']], arrives([['x-a', '\xfc']])],
  ['an empty value', {}, [['x-a', '']], arrives([['x-a', '']])],
  [
    'cookies in crumbs',
    {},
    [
      ['cookie', 'a=1'],
      ['cookie', 'b=2', 'never'],
    ],
    arrives([
      ['cookie', 'a=1'],
      ['cookie', 'b=2'],
    ]),
  ],
]);

const t04 = rows('T-04', [
  [
    'connection',
    {},
    [
      ['connection', 'x-a'],
      ['x-a', '1'],
    ],
    reset,
  ],
  ['connection: close', {}, [['connection', 'close']], reset],
  ['keep-alive', {}, [['keep-alive', '5']], reset],
  ['proxy-connection', {}, [['proxy-connection', 'close']], reset],
  ['upgrade', {}, [['upgrade', 'websocket']], reset],
  ['transfer-encoding', post, [['transfer-encoding', 'chunked']], reset, { body: '0\r\n\r\n' }],
  ['te: gzip', {}, [['te', 'gzip']], reset],
  ['te: trailers, gzip', {}, [['te', 'trailers, gzip']], reset],
  ['te: trailers', {}, [['te', 'trailers']], arrives([['te', 'trailers']])],
  ['an upper-case name', {}, [['X-A', '1']], reset],
  ['the injected name in capitals', {}, [['Authorization', 'mine']], reset],
  ['proxy-authorization', {}, [['proxy-authorization', 'Basic eDp5']], arrives()],
  ['trailers', post, [], arrives([], post), { body: 'abc', trailers: [['x-a', '1']] }],
  [
    'the injected name among trailers',
    post,
    [],
    arrives([], post),
    { body: 'abc', trailers: [['authorization', 'mine']] },
  ],
]);

const server = { ':method': 'OPTIONS', ':path': '*' };
// It speaks of no resource on the host, so no credential is for it (RFC 9110 §9.3.7).
const ofTheServer: Verdict = { arrives: pseudoOf(server) };
const t05 = rows('T-05', [
  ['a length and no body', post, [['content-length', '5']], reset],
  ['a body that is shorter', post, [['content-length', '5']], reset, { body: 'abc', mayBegin: true }],
  ['a body that is longer', post, [['content-length', '3']], lost, { body: 'abcGET /x', mayBegin: true }],
  [
    'two lengths',
    post,
    [
      ['content-length', '3'],
      ['content-length', '3'],
    ],
    reset,
    { body: 'abc' },
  ],
  ['a list of lengths', post, [['content-length', '3, 3']], reset, { body: 'abc' }],
  ['a signed length', post, [['content-length', '+3']], reset, { body: 'abc' }],
  ['a negative length', post, [['content-length', '-1']], reset, { body: 'abc' }],
  [
    'a length beyond 2^53',
    post,
    [['content-length', '9007199254740993']],
    refused(400, 'malformed_request'),
    { body: 'abc' },
  ],
  [
    'the right length',
    post,
    [['content-length', '3']],
    arrives([['content-length', '3']], post),
    { body: 'abc' },
  ],
  ['a body of no stated length', post, [], arrives([], post), { body: 'abc' }],
  ['CR LF in :path', { ':path': '/ HTTP/1.1\r\nx-a: 1' }, [], reset],
  ['a space in :path', { ':path': '/a b' }, [], reset],
  ['a NUL in :path', { ':path': '/a\0' }, [], reset],
  ['a fragment in :path', { ':path': '/a#b' }, [], refused(400, 'malformed_request')],
  ['an empty :path', { ':path': '' }, [], reset],
  ['a :path without a slash', { ':path': 'row' }, [], reset],
  ['an absolute :path', { ':path': 'https://{authority}/row' }, [], reset],
  ['an absolute :path of another host', { ':path': 'http://other.test/row' }, [], reset],
  ['an asterisk', { ':path': '*' }, [], reset],
  ['an asterisk for OPTIONS', server, [], ofTheServer],
  ['CR LF in :method', { ':method': 'GET / HTTP/1.1\r\nx-a: 1\r\n' }, [], reset],
  ['a space in :method', { ':method': 'GET /x' }, [], reset],
  ['CR LF in :authority', { ':authority': '{authority}\r\nx-a: 1' }, [], reset],
  ['no :method', { ':method': undefined }, [], reset],
  ['no :path', { ':path': undefined }, [], reset],
  ['two of :path', {}, [[':path', '/other']], reset],
  [
    'a pseudo-header field behind a field',
    {},
    [
      ['x-a', '1'],
      [':path', '/other'],
    ],
    reset,
  ],
  ['a pseudo-header field that is none', {}, [[':x-a', '1']], reset],
  ['a :status', {}, [[':status', '200']], reset],
  [
    'pseudo-header fields among trailers',
    post,
    [],
    reset,
    { body: 'abc', trailers: [[':path', '/other']], mayBegin: true },
  ],
]);

const t06 = rows('T-06', [
  ['https', { ':scheme': 'https' }, [], arrives()],
  ['http', { ':scheme': 'http' }, [], refused(400, 'target_invalid')],
  ['ftp', { ':scheme': 'ftp' }, [], refused(400, 'target_invalid')],
  ['wss', { ':scheme': 'wss' }, [], refused(400, 'target_invalid')],
  ['none', { ':scheme': undefined }, [], reset],
  ['an empty one', { ':scheme': '' }, [], reset],
  ['two', {}, [[':scheme', 'https']], reset],
  ['one with more behind it', { ':scheme': 'https://other.test/?' }, [], reset],
  ['CR LF in it', { ':scheme': 'https\r\nx-a: 1' }, [], reset],
]);

const tunnel = { ':method': 'CONNECT', ':scheme': undefined, ':path': undefined };
const t07 = rows('T-07', [
  [
    "CONNECT to a port of the proxy's host",
    { ...tunnel, ':authority': '127.0.0.1:22' },
    [],
    refused(405, 'method_refused'),
  ],
  ['CONNECT to the origin itself', tunnel, [], refused(405, 'method_refused')],
  ['CONNECT with a body', tunnel, [], refused(405, 'method_refused'), { body: 'SSH-2.0' }],
  ['CONNECT with scheme and path', { ':method': 'CONNECT' }, [], reset],
  ['CONNECT of nothing', { ...tunnel, ':authority': undefined }, [], reset],
  ['extended CONNECT', { ':method': 'CONNECT', ':protocol': 'websocket' }, [], reset],
  [':protocol on a GET', { ':protocol': 'websocket' }, [], reset],
  ['TRACE', { ':method': 'TRACE' }, [], refused(405, 'method_refused')],
]);

export const requestRows: readonly RequestRow[] = [...t02, ...t03, ...t04, ...t05, ...t06, ...t07];

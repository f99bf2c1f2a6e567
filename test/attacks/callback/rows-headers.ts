// C-12, H-05 and H-06: headers that an endpoint must not inject. One such header invalidates the whole response.
import { failing, cached } from './row-shapes.ts';
import type { CallbackRow } from './callback-script.ts';

const framing = [
  'Host',
  'content-length',
  'Transfer-Encoding',
  'TRANSFER_ENCODING',
  'Content_Length',
  'Connection',
  'Keep-Alive',
  'keep_alive',
  'TE',
  'Trailer',
  'Upgrade',
  'Expect',
  'Proxy-Authorization',
  'Proxy-Authenticate',
  'Proxy-Connection',
  'proxy_anything',
  'HOST',
];
const notTokens: readonly (readonly [name: string, header: string])[] = [
  ['nothing', ''],
  ['space', 'X A'],
  ['space-after', 'X-A '],
  ['tab-before', '\tX-A'],
  ['colon', 'X-A: one\r\nX-B'],
  ['colon-alone', ':'],
  ['pseudo-path', ':path'],
  ['pseudo-authority', ':authority'],
  ['line-end', 'X-A\r\n'],
  ['line-feed', 'X\nA'],
  ['nul', 'X\0A'],
  ['delete', 'X\x7fA'],
  ['letter-beyond-ascii', 'X-é'],
  ['kelvin-sign', 'Coo\u212aie'],
  ['hyphen-that-is-none', 'X‑Key'],
  ['dotless-i', 'Authorızation'],
  ['parentheses', 'X(A)'],
  ['slash', 'X/A'],
  ['at-sign', 'X@A'],
  ['quotes', '"X-A"'],
  ['braces', '{X-A}'],
  ['comma', 'X-A,X-B'],
];
const NAME = 'status 200, application/json: the name of header 2 may not be injected';

/** The good header in the same response is not injected either. */
const beside = (name: string, value = 'v'): Record<string, string> => ({
  Authorization: '{CREDENTIAL}',
  [name]: value,
});

const names: readonly CallbackRow[] = [
  ...framing.map((name) => failing(`H-06 callback-${name}`, [{ headers: beside(name) }], NAME)),
  ...notTokens.map(([name, header]) => failing(`C-12 name-${name}`, [{ headers: beside(header) }], NAME)),
  ...(
    [
      ['two-cases', 'AUTHORIZATION'],
      ['underscore', 'authorization'],
    ] as const
  ).map(([name, twin]) =>
    failing(
      `C-12 one-name-in-${name}`,
      [{ headers: beside(twin) }],
      'status 200, application/json: two headers have one name',
    ),
  ),
  failing(
    'C-12 one-name-by-underscore',
    [{ headers: { 'X-Api-Key': 'a', X_Api_Key: 'b' } }],
    'status 200, application/json: two headers have one name',
  ),
  failing(
    'C-12 bad-name-first',
    [{ headers: { 'X A': 'v', Authorization: '{CREDENTIAL}' } }],
    'status 200, application/json: the name of header 1 may not be injected',
  ),
  failing(
    'C-12 bad-name-last-of-sixty-four',
    [
      {
        headers: {
          ...Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`X-${i}`, 'v'])),
          Host: 'evil.test',
        },
      },
    ],
    'status 200, application/json: the name of header 64 may not be injected',
  ),
];

const values: readonly (readonly [name: string, value: string])[] = [
  ['nothing', ''],
  ['space', ' '],
  ['space-before', ' v'],
  ['space-after', 'v '],
  ['tab-after', 'v\t'],
  ['line-end-after', 'v\n'],
  ['line-end-and-a-field', 'v\r\nX-Evil: 1'],
  ['line-end-and-a-request', 'v\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n'],
  ['return-alone', 'v\rw'],
  ['line-feed-alone', 'v\nw'],
  ['fold', 'v\r\n w'],
  ['nul', 'v\0w'],
  ['bell', 'v\x07w'],
  ['escape', '\x1b[2Jv'],
  ['delete', 'v\x7f'],
  ['next-line', 'v\x85w'],
  ['no-break-space', 'v\xa0w'],
  ['latin-1', 'clé'],
  ['line-separator', 'v\u2028w'],
  ['characters-that-end-in-crlf', 'v\u010d\u010aX-Evil: 1'],
  ['half-a-surrogate', 'v\ud800w'],
  ['emoji', '🔑'],
];

const valueRows: readonly CallbackRow[] = values.map(([name, value]) =>
  failing(
    `H-05 callback-value-${name}`,
    [{ headers: beside('X-Key', value) }],
    'status 200, application/json: the value of header 2 is not a valid field value',
  ),
);

const accepted: readonly CallbackRow[] = [
  cached(
    'C-12 names-like-properties',
    [{ json: { headers: JSON.parse('{"Authorization":"{CREDENTIAL}","__proto__":"a","constructor":"b"}') } }],
    {
      injected: ['Authorization: Bearer call-1-sesame>>open??now~~42~', '__proto__: a', 'constructor: b'],
    },
  ),
  cached('C-12 name-of-symbols', [{ headers: beside("!#$%&'*+-.^_`|~") }], {
    injected: ['Authorization: Bearer call-1-sesame>>open??now~~42~', "!#$%&'*+-.^_`|~: v"],
  }),
  cached('C-12 forwarding-fields', [{ headers: beside('X-Forwarded-For', '127.0.0.1') }], {
    injected: ['Authorization: Bearer call-1-sesame>>open??now~~42~', 'X-Forwarded-For: 127.0.0.1'],
  }),
  cached('H-05 callback-value-with-inner-space', [{ headers: beside('X-Key', 'a \t b') }], {
    injected: ['Authorization: Bearer call-1-sesame>>open??now~~42~', 'X-Key: a \t b'],
  }),
];

export const headerRows: readonly CallbackRow[] = [...names, ...valueRows, ...accepted];

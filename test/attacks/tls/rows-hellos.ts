// S-01, S-02, S-05, S-11 by hand: ClientHellos in pieces, invalid names, extensions beside the name, and malformed ClientHellos.
import { type TlsRow, malformed, otherName, certificateSent, tlsRows } from './tls-script.ts';

const api = { names: ['api.test'] };
/** An entry of type `host_name` with these bytes. */
function nameOf(hex: string): string {
  const size = hex.length / 2;
  return word(size + 3) + '00' + word(size) + hex;
}
function word(value: number): string {
  return value.toString(16).padStart(4, '0');
}
const apiHex = Buffer.from('api.test').toString('hex');
const ping = '1503010002015a';

const s01 = tlsRows('S-01', [
  ['one-byte-a-write', { hello: api, writes: 1 }, certificateSent],
  ['one-byte-a-record', { hello: api, records: 1 }, certificateSent],
  ['one-byte-a-record-one-a-write', { hello: api, records: 1, writes: 1 }, certificateSent],
  ['the-header-of-the-message-alone', { hello: api, records: 4 }, certificateSent],
  ['cut-within-a-header', { hello: api, records: 3, writes: 7 }, certificateSent],
  ['records-of-64', { hello: api, records: 64 }, certificateSent],
  ['padded-to-16-kib', { hello: { ...api, more: [[21, 16_200]] } }, certificateSent],
  ['padded-beyond-one-record', { hello: { ...api, more: [[21, 20_000]] } }, certificateSent],
  [
    'padded-beyond-64-kib',
    {
      hello: {
        ...api,
        more: [
          [21, 32_700],
          [65_000, 32_700],
        ],
      },
    },
    malformed,
  ],
  [
    'the-name-after-the-padding',
    {
      hello: {
        more: [
          [21, 16_300],
          [0, nameOf(apiHex)],
        ],
      },
    },
    certificateSent,
  ],
  [
    'another-name-after-the-padding',
    {
      hello: {
        more: [
          [21, 16_300],
          [0, nameOf(Buffer.from('evil.test').toString('hex'))],
        ],
      },
    },
    otherName,
  ],
  ['another-name-in-records-of-1', { hello: { names: ['evil.test'] }, records: 1 }, otherName],
  [
    'a-second-hello-with-another-name-after',
    { hello: api, after: '160301000401000000' },
    { ...certificateSent, seen: 'certificate of api.test|alert 10|alert 50|alert 47|alert 70' },
  ],
  ['a-record-of-nothing-within', { hello: api, records: 30, within: '1603010000' }, malformed],
  ['an-alert-within', { hello: api, records: 30, within: ping }, malformed],
  ['application-data-within', { hello: api, records: 30, within: '17030100012a' }, malformed],
  ['a-change-of-cipher-within', { hello: api, records: 30, within: '140301000101' }, malformed],
  ['a-record-beyond-2-14', { hello: api, instead: `16030140${'01'}${'00'.repeat(16_385)}` }, malformed],
  ['a-message-that-says-16-mib', { hello: api, instead: '160301000401ffffff' }, malformed],
  ['a-message-of-nothing', { hello: api, instead: '160301000401000000' }, malformed],
  ['a-server-hello', { hello: api, instead: '160303000402000000' }, malformed],
]);

const name = (text: string): { readonly names: readonly string[] } => ({ names: [text] });
const s02 = tlsRows('S-02', [
  ['65000-bytes', { hello: { nameData: nameOf('61'.repeat(65_000)) } }, malformed],
  ['a-label-of-300', { hello: name(`${'a'.repeat(300)}.test`) }, malformed],
  ['a-label-of-64', { hello: name(`${'a'.repeat(64)}.api.test`) }, malformed],
  ['254-bytes', { hello: name(`${'a.'.repeat(125)}test`) }, malformed],
  ['an-address', { hello: name('127.0.0.1') }, malformed],
  ['an-address-of-six', { hello: name('[::1]') }, malformed],
  ['a-short-address', { hello: name('127.1') }, malformed],
  ['an-address-in-hex', { hello: name('0x7f000001') }, otherName],
  ['a-wildcard', { hello: name('*.test') }, malformed],
  ['a-dot-before', { hello: name('.api.test') }, malformed],
  ['two-dots-after', { hello: name('api.test..') }, malformed],
  ['only-a-dot', { hello: name('.') }, malformed],
  ['a-nul-after', { hello: name('api.test\0') }, malformed],
  ['a-nul-and-another', { hello: name('api.test\0.evil.test') }, malformed],
  ['a-port', { hello: name('api.test:443') }, malformed],
  ['a-path', { hello: name('api.test/') }, malformed],
  ['a-user', { hello: name('me@api.test') }, malformed],
  ['a-space', { hello: name('api.test ') }, malformed],
  ['a-line', { hello: name('api.test\r\nX: y') }, malformed],
  ['utf-8', { hello: name('\xc3\xa4pi.test') }, malformed],
  ['two-names', { hello: { names: ['api.test', 'evil.test'] } }, malformed],
  ['the-same-name-twice', { hello: { names: ['api.test', 'api.test'] } }, malformed],
  ['two-extensions', { hello: { ...api, more: [[0, nameOf(apiHex)]] } }, malformed],
  ['of-an-unknown-type', { hello: { nameData: `000b010008${apiHex}` } }, malformed],
  ['of-an-unknown-type-beside', { hello: { nameData: `0016000008${apiHex}010008${apiHex}` } }, malformed],
  ['no-entry', { hello: { nameData: '0000' } }, malformed],
  ['no-list', { hello: { nameData: '', more: [] } }, malformed],
  ['an-empty-name', { hello: { nameData: nameOf('') } }, malformed],
  ['a-list-that-is-longer-than-it-says', { hello: { nameData: `000a000008${apiHex}` } }, malformed],
  ['a-list-that-is-shorter-than-it-says', { hello: { nameData: `000c000008${apiHex}` } }, malformed],
  ['a-name-that-is-longer-than-its-list', { hello: { nameData: `000b000009${apiHex}` } }, malformed],
  ['in-capitals', { hello: name('API.TEST') }, certificateSent],
  ['a-dot-after', { hello: name('api.test.') }, certificateSent],
  ['none', { hello: {} }, certificateSent],
  ['a-name-above', { hello: name('test') }, otherName],
  ['a-name-below', { hello: name('x.api.test') }, otherName],
]);

// RFC 9849: type 0 is the outer hello; suite, id, key, payload. The proxy publishes no configuration and ignores it.
const ech = `00000100012a0020${'ab'.repeat(32)}0010${'cd'.repeat(16)}`;
const s05 = tlsRows('S-05', [
  ['beside-the-name', { hello: { ...api, more: [[0xfe0d, ech]] } }, certificateSent],
  ['after-a-cover-name', { hello: { names: ['cover.test'], more: [[0xfe0d, ech]] } }, otherName],
  ['after-no-name', { hello: { more: [[0xfe0d, ech]] } }, certificateSent],
  ['that-says-it-is-the-inner-one', { hello: { ...api, more: [[0xfe0d, '01']] } }, certificateSent],
  ['of-nothing', { hello: { ...api, more: [[0xfe0d, '']] } }, certificateSent],
  ['of-noise', { hello: { ...api, more: [[0xfe0d, 'ff'.repeat(200)]] } }, certificateSent],
  [
    'twice',
    {
      hello: {
        ...api,
        more: [
          [0xfe0d, ech],
          [0xfe0d, ech],
        ],
      },
    },
    malformed,
  ],
  ['esni-of-the-drafts', { hello: { names: ['cover.test'], more: [[0xffce, ech]] } }, otherName],
  ['esni-beside-the-name', { hello: { ...api, more: [[0xffce, ech]] } }, certificateSent],
  ['outer-extensions-outside', { hello: { ...api, more: [[0xfd00, '020000']] } }, certificateSent],
  [
    'grease',
    {
      hello: {
        ...api,
        more: [
          [0x0a0a, ''],
          [0xfafa, '00'],
        ],
      },
    },
    certificateSent,
  ],
]);

const s11 = tlsRows('S-11', [
  [
    'sslv2',
    { hello: api, instead: '802e0100020015000000100100800300800700c0' },
    { seen: 'end', arrives: 0, record: 'failed not_tls_nor_http' },
  ],
  [
    'ssl-3-in-the-hello',
    { hello: { ...api, version: '0300' } },
    { seen: 'alert 40|alert 70', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'tls-1-0-in-the-hello',
    { hello: { ...api, version: '0301' } },
    { seen: 'alert 70', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'tls-1-1-in-the-hello',
    { hello: { ...api, version: '0302' } },
    { seen: 'alert 70', arrives: 0, record: 'failed handshake_failed' },
  ],
  ['a-version-of-the-future', { hello: { ...api, version: '03ff' } }, certificateSent],
  ['dtls-in-the-hello', { hello: { ...api, version: 'fefd' } }, malformed],
  [
    'a-fallback-that-no-one-forced',
    { hello: { ...api, suites: 'c02bc02f5600' } },
    { seen: 'alert 86', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'compression-alone',
    { hello: { ...api, compressions: '01' } },
    { seen: 'alert 50|alert 47', arrives: 0, record: 'failed handshake_failed' },
  ],
  ['no-compression-at-all', { hello: { ...api, compressions: '' } }, malformed],
  [
    'null-ciphers-alone',
    { hello: { ...api, suites: 'c006003b0001' } },
    { seen: 'alert 40', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'rc4-and-export-alone',
    { hello: { ...api, suites: '0005000400030008' } },
    { seen: 'alert 40', arrives: 0, record: 'failed handshake_failed' },
  ],
  ['half-a-cipher', { hello: { ...api, suites: 'c02bc0' } }, malformed],
  ['a-session-id-of-33', { hello: { ...api, sessionId: '08'.repeat(33) } }, malformed],
  ['early-data-without-a-key', { hello: { ...api, more: [[42, '']] } }, certificateSent],
  [
    'early-data-after-it',
    { hello: { ...api, more: [[42, '']] }, after: `17030300104745542f${'00'.repeat(12)}`.slice(0, 42) },
    { seen: 'alert 10', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'a-heartbeat-that-bleeds',
    { hello: { ...api, more: [[15, '01']] }, after: '1803030003014000' },
    { seen: 'alert 10', arrives: 0, record: 'failed handshake_failed' },
  ],
  [
    'a-renegotiation-that-is-none',
    { hello: { ...api, more: [[0xff01, '0c000000000000000000000000']] } },
    { seen: 'alert 40|alert 50', arrives: 0, record: 'failed handshake_failed' },
  ],
]);

export const helloRows: readonly TlsRow[] = [...s01, ...s02, ...s05, ...s11];

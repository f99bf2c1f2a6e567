// T-01, S-03, S-10, S-11 and the rest of S-01 by clients that finish their handshake: what they offer, how their ClientHello is
// split, how many certificates they can make the proxy mint.
import {
  type TlsExpectation,
  type TlsRow,
  otherName,
  servedPlainly,
  certificateSent,
  tlsRows,
} from './tls-script.ts';

const h1 = servedPlainly;
const noProtocol: TlsExpectation = {
  seen: 'error ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
  arrives: 0,
  record: 'failed alpn_unsupported',
};
const oldVersion: TlsExpectation = { seen: 'alert 120', arrives: 0, record: 'failed alpn_unsupported' };
const done: TlsExpectation = { seen: 'h2 done', arrives: 0, record: 'failed client_gone' };

const t01 = tlsRows('T-01', [
  ['spdy', { client: { alpn: ['spdy/3.1'] } }, noProtocol],
  ['http-2-in-capitals', { client: { alpn: ['H2'] } }, noProtocol],
  ['h2c', { client: { alpn: ['h2c'] } }, noProtocol],
  ['http-1-0', { client: { alpn: ['http/1.0'] } }, noProtocol],
  ['http-3', { client: { alpn: ['h3', 'h3-29'] } }, noProtocol],
  ['h2-with-a-nul', { client: { alpn: ['h2\0'] } }, noProtocol],
  ['unknown-before-http-1-1', { client: { alpn: ['spdy/3.1', 'http/1.1'] } }, h1],
  ['h2-and-then-nothing', { client: { alpn: ['h2'] }, then: 'nothing' }, done],
  [
    'h2-and-a-request-of-http-1-1',
    { client: { alpn: ['h2'] } },
    { seen: 'h2 end|h2 error ECONNRESET', arrives: 0, record: 'failed' },
  ],
  [
    'http-1-1-and-a-preface',
    { client: {}, then: 'http2 preface' },
    { seen: 'http/1.1 505 version_refused', arrives: 0, record: 'refused version_refused' },
  ],
  [
    'an-empty-name-in-a-hello',
    { hello: { names: ['api.test'], more: [[16, '000100']] } },
    { seen: 'alert 50', arrives: 0, record: 'failed client_hello_malformed alpn_invalid' },
  ],
  [
    'no-name-in-a-hello',
    { hello: { names: ['api.test'], more: [[16, '0000']] } },
    { seen: 'alert 50', arrives: 0, record: 'failed client_hello_malformed alpn_invalid' },
  ],
  [
    'two-lists',
    { hello: { names: ['api.test'], alpn: ['http/1.1'], more: [[16, '0003026832']] } },
    { seen: 'alert 50', arrives: 0, record: 'failed client_hello_malformed extension_repeated' },
  ],
  ['nothing-that-we-speak-in-a-hello', { hello: { names: ['api.test'], alpn: ['acme-tls/1'] } }, oldVersion],
]);

const s01 = tlsRows('S-01', [
  ['a-client-in-records-of-1', { client: {}, records: 1 }, h1],
  ['a-client-one-byte-a-write', { client: {}, writes: 1 }, h1],
  ['a-client-of-tls-1-2-in-records-of-7', { client: { maxVersion: 'TLSv1.2' }, records: 7, writes: 3 }, h1],
  ['a-client-with-a-hello-of-20-kib', { client: {}, fill: 80 }, h1],
  [
    'a-client-with-a-hello-of-20-kib-in-records-of-100',
    { client: {}, fill: 80, records: 100, writes: 50 },
    h1,
  ],
]);

const mint = 'm{n}.mint.test:443';
const s03 = tlsRows('S-03', [
  [
    '300-names-of-a-rule',
    { hello: { names: ['m{n}.mint.test'] }, authority: mint, times: 300 },
    { seen: 'certificate of m{n}.mint.test', arrives: 0, certificates: 300 },
  ],
  [
    '300-names-for-one-host',
    { hello: { names: ['m{n}.mint.test'] }, times: 300 },
    { ...otherName, certificates: 0 },
  ],
  [
    '300-times-the-same',
    { hello: { names: ['api.test'] }, times: 300 },
    { ...certificateSent, certificates: 1 },
  ],
  ['300-times-without-a-name', { hello: {}, times: 300 }, { ...certificateSent, certificates: 1 }],
  [
    '300-ports-of-one-host',
    { hello: { names: ['p.mint.test'] }, authority: 'p.mint.test:2{n}', times: 300 },
    { seen: 'certificate of p.mint.test', arrives: 0, certificates: 1 },
  ],
  [
    '300-hellos-that-are-none',
    { hello: { names: ['m{n}..mint.test'] }, authority: mint, times: 300 },
    { seen: 'alert 50', arrives: 0, certificates: 0 },
  ],
  [
    'spellings-of-one-host',
    { hello: { names: ['API.Test.'] }, authority: 'aPi.tESt', times: 50 },
    { ...certificateSent, certificates: 1 },
  ],
]);

const s11 = tlsRows('S-11', [
  [
    'tls-in-tls',
    { client: {}, then: 'tls in tls' },
    { seen: 'http/1.1 400 malformed_request', arrives: 0, record: 'refused malformed_request' },
  ],
  ['a-request-in-records-of-one-byte', { client: {}, then: 'tiny records' }, h1],
  [
    'a-request-of-tls-1-2-in-records-of-one-byte',
    { client: { maxVersion: 'TLSv1.2' }, then: 'tiny records' },
    h1,
  ],
  [
    'renegotiation',
    { client: { maxVersion: 'TLSv1.2' }, then: 'renegotiation' },
    {
      seen: 'http/1.1 error EPROTO|http/1.1 error ERR_SSL_NO_RENEGOTIATION|http/1.1 end',
      arrives: 0,
    },
  ],
  [
    'thirty-handshakes-and-nothing-more',
    { client: {}, then: 'nothing', times: 30 },
    { seen: 'http/1.1 done', arrives: 0, certificates: 1, record: 'failed client_gone' },
  ],
  [
    'tls-1-1-alone',
    { client: { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } },
    { seen: 'error ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', arrives: 0, record: 'failed handshake_failed' },
  ],
]);

export const clientRows: readonly TlsRow[] = [...t01, ...s01, ...s03, ...s11];

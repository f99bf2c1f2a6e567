// D-06 to D-08: requests that name more than one host, or an invalid one.
import { type MessageRow, accepted, arrival, refused, rowsOf } from './message-script.ts';

const mismatch = refused(421, 'authority_mismatch');
const disagree = refused(400, 'host_mismatch');
const noTarget = refused(400, 'target_invalid');
const noAuthority = refused(400, 'authority_invalid');
const noHost = refused(400, 'host_invalid');
const malformedTarget = refused(400, 'malformed_request');

const get = (target: string, host = '{HOST}'): string => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
const hosts = (...lines: readonly string[]): string => ['GET {AT}/x HTTP/1.1', ...lines, '', ''].join('\r\n');

/** An arrival whose Host line is unchanged. */
const named = (host: string): ReturnType<typeof arrival> => ({
  ...arrival('GET /x'),
  head: ['GET /x HTTP/1.1', `Host: ${host}`, '{AUTH}'],
});

const hostValues: readonly (readonly [string, string])[] = [
  ['empty', ''],
  ['space', ' '],
  ['list', '{HOST}, {EVIL}'],
  ['list-of-equals', '{HOST}, {HOST}'],
  ['list-without-space', '{HOST},{EVIL}'],
  ['trailing-comma', '{HOST},'],
  ['userinfo', 'evil.test@{HOST}'],
  ['userinfo-with-password', 'a:b@{HOST}'],
  ['host-as-userinfo', '{HOST}@evil.test'],
  ['empty-userinfo', '@{HOST}'],
  ['path', '{HOST}/x'],
  ['slash', '{HOST}/'],
  ['query', '{HOST}?x'],
  ['fragment', '{HOST}#@evil.test'],
  ['backslash', '{HOST}\\@evil.test'],
  ['scheme', 'http://{HOST}'],
  ['inner-space', 'api.test evil.test'],
  ['inner-tab', 'api.test\tevil.test'],
  ['semicolon', '{HOST};evil.test'],
  ['quoted', '"{HOST}"'],
  ['port-empty', 'api.test:'],
  ['port-twice', '{HOST}:{PORT}'],
  ['port-zero-padded', 'api.test:0{PORT}'],
  ['port-signed', 'api.test:+{PORT}'],
  ['port-name', 'api.test:https'],
  ['port-zero', 'api.test:0'],
  ['port-too-great', 'api.test:99999'],
  ['port-negative', 'api.test:-1'],
  ['port-alone', ':{PORT}'],
  ['two-trailing-dots', 'api.test..:{PORT}'],
  ['leading-dot', '.api.test:{PORT}'],
  ['empty-label', 'api..test:{PORT}'],
  ['dot', '.'],
  ['percent-encoded-dot', 'api%2etest:{PORT}'],
  ['percent-encoded-nul', 'api.test%00.evil.test:{PORT}'],
  ['asterisk', '*.test:{PORT}'],
  ['ideographic-dot', 'api\xe3\x80\x82test:{PORT}'],
  ['fullwidth', '\xef\xbd\x81pi.test:{PORT}'],
  ['latin1', 'api.t\xe9st:{PORT}'],
  ['brackets', '[api.test]:{PORT}'],
  ['braces', '{api.test}:{PORT}'],
  ['address-unclosed', '[::1'],
  ['address-bare', '::1:{PORT}'],
  ['address-with-zone', '[fe80::1%25lo]:{PORT}'],
  ['label-of-64', `${'a'.repeat(64)}.test:{PORT}`],
  ['name-of-300', `${'a.'.repeat(150)}test:{PORT}`],
  ['leading-hyphen', '-api.test:{PORT}'],
  ['number', '2130706433'],
];

const others: readonly (readonly [string, string])[] = [
  ['another-host', '{EVIL}'],
  ['another-port', 'api.test:{EVIL_PORT}'],
  ['default-port', 'api.test'],
  ['subdomain', 'www.api.test:{PORT}'],
  ['parent', 'test:{PORT}'],
  ['suffix', 'api.test.evil.test:{PORT}'],
  ['prefix', 'evilapi.test:{PORT}'],
  ['hyphen-for-dot', 'api-test:{PORT}'],
  ['its-address', '127.0.0.1:{PORT}'],
  ['localhost', 'localhost:{PORT}'],
  ['punycode', 'xn--api-5la.test:{PORT}'],
];

const agreeing: readonly (readonly [string, string])[] = [
  ['upper-case', 'API.TEST:{PORT}'],
  ['mixed-case', 'aPi.tEsT:{PORT}'],
  ['trailing-dot', 'api.test.:{PORT}'],
];

const same = (name: string, value: string): readonly [string, string, ReturnType<typeof accepted>] => [
  `agrees-${name}`,
  hosts(`Host: ${value}`),
  accepted(named(value)),
];

export const hostRows: readonly MessageRow[] = [
  ...rowsOf(
    'D-06',
    [
      ['same-host', get('https://{HOST}/x'), accepted(arrival('GET /x'))],
      ['same-host-upper-case', get('HTTPS://API.TEST:{PORT}/x'), accepted(arrival('GET /x'))],
      ['same-host-trailing-dot', get('https://api.test.:{PORT}/x'), accepted(arrival('GET /x'))],
      ['same-host-no-path', get('https://{HOST}'), accepted(arrival('GET /'))],
      ['same-host-query-only', get('https://{HOST}?a=b'), accepted(arrival('GET /?a=b'))],
      ['another-host', get('https://{EVIL}/x'), mismatch],
      ['another-host-and-host', get('https://{EVIL}/x', '{EVIL}'), mismatch],
      ['another-host-in-clear', get('http://{EVIL}/x'), noTarget],
      ['another-host-same-port', get('https://evil.test:{PORT}/x'), mismatch],
      ['same-host-in-clear', get('http://{HOST}/x'), noTarget],
      ['same-host-another-port', get('https://api.test:{EVIL_PORT}/x'), mismatch],
      ['same-host-default-port', get('https://api.test/x'), mismatch],
      ['subdomain', get('https://www.api.test:{PORT}/x'), mismatch],
      ['suffix', get('https://api.test.evil.test:{PORT}/x'), mismatch],
      ['host-differs', get('https://{HOST}/x', '{EVIL}'), mismatch],
      ['userinfo', get('https://evil.test@{HOST}/x'), noAuthority],
      ['host-as-userinfo', get('https://{HOST}@evil.test/x'), noAuthority],
      ['empty-authority', get('https:///x'), noAuthority],
      ['empty-scheme', get('://{HOST}/x'), noTarget],
      ['other-scheme', get('ftp://{HOST}/x'), noTarget],
      ['websocket-scheme', get('wss://{HOST}/x'), noTarget],
      ['one-slash', get('https:/{HOST}/x'), noTarget],
      ['no-slash', get('https:{HOST}/x'), noTarget],
      ['backslashes', get('https:\\\\{EVIL}\\x'), noTarget],
      ['backslash-in-authority', get('https://{HOST}\\@evil.test/x'), noAuthority],
      ['fragment', get('https://{HOST}#@evil.test/x'), malformedTarget],
      ['double-authority', get('https://{EVIL}:{PORT}/x'), noAuthority],
      ['percent-in-host', get('https://api%2etest:{PORT}/x'), noAuthority],
      ['nested-url', get('/https://{EVIL}/x'), accepted(arrival('GET /https://{EVIL}/x'))],
      ['network-path', get('//{EVIL}/x'), accepted(arrival('GET //{EVIL}/x'))],
    ],
    { on: ['tunnel'] },
  ),
  ...rowsOf(
    'D-07',
    [
      ...others.map(([name, host]) => [name, get('http://{HOST}/x', host), disagree] as const),
      ['same', get('http://{HOST}/x'), accepted(arrival('GET /x'))],
      ['scheme-upper-case', get('HTTP://{HOST}/x'), accepted(arrival('GET /x'))],
      ['no-path', get('http://{HOST}'), accepted(arrival('GET /'))],
      ['query-only', get('http://{HOST}?/v1/'), accepted(arrival('GET /?/v1/'))],
      ['https', get('https://{HOST}/x'), refused(400, 'use_connect')],
      ['origin-form', get('/x'), refused(400, 'not_a_proxy_request')],
      ['origin-form-of-a-url', get('/http://{HOST}/x'), refused(400, 'not_a_proxy_request')],
      ['network-path', get('//{HOST}/x'), refused(400, 'not_a_proxy_request')],
      ['authority-form', get('{HOST}'), noTarget],
      ['one-slash', get('http:/{HOST}/x'), noTarget],
      ['userinfo', get('http://a:b@{HOST}/x'), noAuthority],
      ['host-as-userinfo', get('http://{HOST}@evil.test/x'), noAuthority],
      ['empty-authority', get('http:///x'), noAuthority],
      ['port-empty', get('http://api.test:/x'), noAuthority],
      ['backslash', get('http://{EVIL}\\@{HOST}/x'), noAuthority],
      ['two-authorities', get('http://{HOST},{EVIL}/x'), noAuthority],
      ['fragment', get('http://{HOST}#.evil.test/x'), malformedTarget],
    ],
    { on: ['plain'] },
  ),
  ...rowsOf(
    'D-08',
    hostValues.map(([name, value]) => [name, hosts(`Host: ${value}`), noHost]),
  ),
  ...rowsOf('D-08', [
    ['two-different', hosts('Host: {HOST}', 'Host: {EVIL}'), noHost],
    ['two-different-reversed', hosts('Host: {EVIL}', 'Host: {HOST}'), noHost],
    ['two-equal', hosts('Host: {HOST}', 'Host: {HOST}'), noHost],
    ['two-cases-of-the-name', hosts('Host: {HOST}', 'hOST: {HOST}'), noHost],
    ['second-empty', hosts('Host: {HOST}', 'Host:'), noHost],
    ['first-empty', hosts('Host:', 'Host: {HOST}'), noHost],
    ['far-apart', hosts('Host: {HOST}', 'X: 1', 'Y: 2', 'Host: {EVIL}'), noHost],
    ['missing', hosts('X: 1'), noHost],
    ['missing-but-lookalike', hosts('X-Host: {HOST}'), noHost],
    ['nominated', hosts('Host: {HOST}', 'Connection: host'), refused(400, 'malformed_request')],
    ['nul-inside', hosts('Host: api.test\0.evil.test:{PORT}'), refused(400, 'malformed_request')],
    ...agreeing.map(([name, value]) => same(name, value)),
  ]),
  ...rowsOf(
    'D-08',
    others.map(([name, host]) => [`tunnel-${name}`, hosts(`Host: ${host}`), mismatch]),
    { on: ['tunnel'] },
  ),
];

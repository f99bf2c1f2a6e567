// C-01 and C-02: addresses that an endpoint may have, and redirects that are not followed.
import { GOOD, failing, refusedDocument, reply } from './row-shapes.ts';
import type { CallbackRow } from './callback-script.ts';

const never = (name: string, url: string, cause: string, config?: 'strict'): CallbackRow => ({
  id: `C-01 ${name}`,
  script: { entry: { url }, play: [{ ask: 2 }], ...(config ? { config } : {}) },
  expect: { outcomes: ['failed', 'failed'], calls: 0, cause: `refused: ${cause}` },
});

const addresses: readonly (readonly [name: string, url: string, cause: string])[] = [
  ['metadata', 'http://169.254.169.254/latest/meta-data/', 'metadata'],
  ['metadata-over-tls', 'https://169.254.169.254/', 'metadata'],
  ['metadata-at-another-port', 'http://169.254.169.254:8080/', 'metadata'],
  ['metadata-in-ipv6', 'http://[fd00:ec2::254]/', 'metadata'],
  ['metadata-mapped', 'http://[::ffff:169.254.169.254]/', 'metadata'],
  ['metadata-mapped-in-hexadecimal', 'http://[::ffff:a9fe:a9fe]/', 'metadata'],
  ['metadata-translated', 'http://[64:ff9b::a9fe:a9fe]/', 'metadata'],
  ['metadata-in-6to4', 'http://[2002:a9fe:a9fe::1]/', 'metadata'],
  ['metadata-of-azure', 'http://168.63.129.16/machine', 'metadata'],
  ['metadata-of-alibaba', 'http://100.100.100.200/', 'metadata'],
  ['metadata-of-google-in-ipv6', 'http://[fd20:ce::254]/', 'metadata'],
  ['link-local', 'http://169.254.1.1/', 'link_local'],
  ['link-local-in-ipv6', 'http://[fe80::1]/', 'link_local'],
  ['unspecified', 'http://0.0.0.0:{CALLBACK}/', 'unspecified'],
  ['unspecified-in-ipv6', 'http://[::]:{CALLBACK}/', 'unspecified'],
  ['multicast', 'http://224.0.0.1/', 'multicast'],
  ['multicast-in-ipv6', 'http://[ff02::1]/', 'multicast'],
  ['broadcast', 'http://255.255.255.255/', 'reserved'],
  ['own-proxy-port', 'http://127.0.0.1:{PROXY}/', 'own listener'],
  ['own-proxy-port-mapped', 'http://[::ffff:127.0.0.1]:{PROXY}/', 'own listener'],
  ['own-proxy-port-by-name', 'http://localhost:{PROXY}/healthz', 'own listener'],
  ['own-admin-port', 'http://127.0.0.1:{ADMIN}/v1/proxy_config', 'own listener'],
  ['own-admin-port-by-name', 'http://any.test:{ADMIN}/', 'own listener'],
  ['name-of-metadata', 'http://meta.test/', 'metadata'],
  ['name-of-metadata-among-others', 'http://mixed.test:{CALLBACK}/', 'metadata'],
  ['name-of-metadata-mapped', 'http://mapped.test/', 'metadata'],
  ['name-of-nothing', 'http://zero.test:{CALLBACK}/', 'unspecified'],
  ['name-of-a-link', 'http://linked.test/', 'link_local'],
  ['name-without-addresses', 'http://void.test/', 'dns_failed'],
  ['name-that-does-not-resolve', 'http://lost.test/', 'dns_failed'],
];

const strictly: readonly (readonly [name: string, url: string, cause: string])[] = [
  ['loopback', 'http://127.0.0.1:{CALLBACK}/', 'loopback'],
  ['loopback-elsewhere-in-its-range', 'http://127.9.9.9:{CALLBACK}/', 'loopback'],
  ['loopback-by-name', 'http://localhost:{CALLBACK}/', 'loopback'],
  ['loopback-in-ipv6', 'http://[::1]:{CALLBACK}/', 'loopback'],
  ['private-10', 'http://10.0.0.1/', 'private'],
  ['private-172', 'http://172.16.0.1/', 'private'],
  ['private-192', 'http://192.168.1.1/', 'private'],
  ['private-in-ipv6', 'http://[fd12:3456::1]/', 'private'],
  ['carrier-grade', 'http://100.64.0.1/', 'cgnat'],
  ['name-of-loopback', 'http://any.test:{CALLBACK}/', 'loopback'],
];

/** The name resolves to loopback at the check and to a metadata service afterwards: the checked address is dialled. */
const rebinding: CallbackRow = {
  id: 'C-01 name-that-changes-between-calls',
  script: {
    entry: { url: 'http://rebind.test:{CALLBACK}/' },
    responses: [[{ send: reply('500 No', ['Connection: close'], '') }]],
    play: [{ ask: 3 }],
  },
  expect: { outcomes: ['failed', 'call-2', 'call-2'], calls: 2, cause: 'status 500' },
};

const urls: readonly (readonly [name: string, url: unknown])[] = [
  ['file', 'file:///etc/passwd'],
  ['ftp', 'ftp://cb.test/'],
  ['gopher', 'gopher://cb.test:6379/_INFO'],
  ['data', 'data:application/json,{}'],
  ['unix-socket', 'http+unix://%2Fvar%2Frun%2Fdocker.sock/'],
  ['websocket', 'ws://cb.test/'],
  ['no-scheme', '//cb.test/'],
  ['scheme-in-capitals', 'HTTP://cb.test/'],
  ['user', 'http://user@cb.test/'],
  ['user-and-password', 'http://user:pass@cb.test/'],
  ['user-that-looks-like-a-host', 'http://cb.test@169.254.169.254/'],
  ['empty-user', 'http://@cb.test/'],
  ['fragment', 'http://cb.test/#@169.254.169.254'],
  ['backslash-as-slash', 'http:\\\\cb.test\\'],
  ['backslash-in-authority', 'http://cb.test\\@169.254.169.254/'],
  ['backslash-in-path', 'http://cb.test/a\\b'],
  ['space', 'http://cb.test/ HTTP/1.1'],
  ['line-end', 'http://cb.test/\r\nX-Evil: 1'],
  ['tab-that-parsers-drop', 'http://169.254.\t169.254/'],
  ['nul', 'http://cb.test\0.evil.test/'],
  ['decimal-address', 'http://2852039166/'],
  ['hexadecimal-address', 'http://0xa9fea9fe/'],
  ['octal-address', 'http://0251.0376.0251.0376/'],
  ['short-address', 'http://127.1/'],
  ['address-with-leading-zeros', 'http://127.0.0.01/'],
  ['address-of-five-parts', 'http://169.254.169.254.1/'],
  ['zone', 'http://[fe80::1%25lo]/'],
  ['brackets-that-do-not-close', 'http://[::1/'],
  ['ipv6-without-brackets', 'http://::1/'],
  ['fullwidth-digits', 'http://１６９.254.169.254/'],
  ['ideographic-stops', 'http://169。254。169。254/'],
  ['escaped-host', 'http://169%2e254%2e169%2e254/'],
  ['port-of-zero', 'http://cb.test:0/'],
  ['port-beyond', 'http://cb.test:65536/'],
  ['port-with-a-zero', 'http://cb.test:080/'],
  ['port-of-letters', 'http://cb.test:http/'],
  ['two-ports', 'http://cb.test:80:80/'],
  ['no-host', 'http:///path'],
  ['a-port-alone', 'http://:80/'],
  ['a-list', ['http://cb.test/']],
  ['nothing', ''],
  ['null', null],
];

const redirects: readonly (readonly [name: string, status: string, fields: readonly string[]])[] = [
  ['moved', '301 Moved', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['found', '302 Found', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['see-other', '303 See Other', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['temporary', '307 Temporary', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['permanent', '308 Permanent', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['to-itself', '307 Temporary', ['Location: /credentials']],
  ['to-metadata', '302 Found', ['Location: http://169.254.169.254/']],
  ['to-a-file', '301 Moved', ['Location: file:///etc/passwd']],
  ['use-proxy', '305 Use Proxy', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['choices', '300 Choices', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['not-modified', '304 Not Modified', ['Location: http://127.0.0.1:{ELSEWHERE}/']],
  ['without-location', '302 Found', []],
];

const redirectRows = redirects.map(([name, status, fields]) =>
  failing(
    `C-02 ${name}`,
    [{ send: reply(status, fields, status.startsWith('304') ? '' : GOOD) }],
    `status ${status.slice(0, 3)}`,
  ),
);

const notFollowed: readonly CallbackRow[] = (
  [
    ['created', '201 Created', 'Location: http://127.0.0.1:{ELSEWHERE}/'],
    ['refresh', '200 OK', 'Refresh: 0; url=http://127.0.0.1:{ELSEWHERE}/'],
    ['other-service', '200 OK', 'Alt-Svc: h3="127.0.0.1:{ELSEWHERE}"'],
  ] as const
).map(([name, status, field]) => ({
  id: `C-02 ${name}`,
  script: { responses: [[{ send: reply(status, [field], GOOD) }]] },
  expect: { outcomes: ['call-1', 'call-1'], calls: 1 },
}));

export const reachRows: readonly CallbackRow[] = [
  ...addresses.map(([name, url, cause]) => never(name, url, cause)),
  ...strictly.map(([name, url, cause]) => never(`strictly-${name}`, url, cause, 'strict')),
  rebinding,
  ...urls.map(([name, url]) => refusedDocument(`C-01 url-${name}`, { url }, 'url')),
  ...redirectRows,
  ...notFollowed,
];

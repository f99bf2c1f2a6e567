// S-06, S-07, S-09 and S-10: untrusted hosts, over both versions of HTTP, and one trusted host that proves the rows can
// succeed.
import { type TlsRow, tlsRows } from './tls-script.ts';

const untrusted: readonly string[] = [
  'self-signed',
  'untrusted-root',
  'untrusted-root-in-chain',
  'incomplete-chain',
  'wrong-chain',
  'wrong-host',
  'name-in-cn-only',
  'name-in-cn-and-another-in-san',
  'address-only',
  'mail-only',
  'uri-only',
  'below.wildcard',
  'wildcard-of-everything',
  'wildcard-of-two',
  'inner-wildcard',
  'wildcard-above',
  'suffix',
  'constrained-elsewhere',
  'excluded-here',
  'sha1',
  'rsa-1024',
  'for-clients-only',
  'expired',
  'not-yet-valid',
];
const unreachable: readonly string[] = ['tls-1-0', 'tls-1-1', 'null-cipher', 'anonymous-cipher'];
const chains: readonly string[] = [
  'by-no-ca',
  'by-no-constraints',
  'by-a-leaf',
  'by-no-cert-sign',
  'below-the-last',
  'by-one-for-clients',
  'unknown-and-critical',
];
const proxyCa: readonly string[] = [
  'proxy-ca',
  'proxy-ca-as-leaf',
  'proxy-ca-with-the-root',
  'proxy-ca-for-another',
];

function rowsOf(classId: string, names: readonly string[], code = 'upstream_untrusted'): readonly TlsRow[] {
  const overs = ['http/1.1', 'h2'] as const;
  return overs.flatMap((over) =>
    tlsRows(
      classId,
      names.map((name) => [
        `${name}-over-${over === 'h2' ? 'h2' : 'http1'}`,
        { host: `${name}.bad.test`, over },
        { seen: `${over} 502 ${code}`, arrives: 0, record: `failed ${code}` },
      ]),
    ),
  );
}

const believed = tlsRows('S-06', [
  [
    'good',
    { host: 'good.bad.test', over: 'http/1.1' },
    { seen: 'http/1.1 200', arrives: 0, isProven: true, record: 'injected' },
  ],
  [
    'good-by-a-middle',
    { host: 'good-by-a-middle.bad.test', over: 'http/1.1' },
    { seen: 'http/1.1 200', arrives: 0, isProven: true, record: 'injected' },
  ],
]);

const asking = tlsRows('S-10', [
  ...['requests-a-certificate', 'requests-a-certificate-by-tls-1-2', 'requests-a-proxy-certificate'].map(
    (name) =>
      [
        name,
        { host: `${name}.bad.test`, over: 'http/1.1' },
        { seen: 'http/1.1 200', arrives: 0, isProven: true, record: 'injected' },
      ] as const,
  ),
  ...(['http/1.1', 'h2'] as const).flatMap((over) =>
    ['requires-a-certificate', 'requires-a-certificate-by-tls-1-2'].map(
      (name) =>
        [
          `${name}-over-${over === 'h2' ? 'h2' : 'http1'}`,
          { host: `${name}.bad.test`, over },
          {
            seen: `${over} 502 client_certificate_required`,
            arrives: 0,
            isProven: true,
            record: 'failed client_certificate_required',
          },
        ] as const,
    ),
  ),
]);

export const hostRows: readonly TlsRow[] = [
  ...believed,
  ...asking,
  ...rowsOf('S-06', untrusted),
  ...rowsOf('S-06', unreachable, 'upstream_unreachable'),
  ...rowsOf('S-07', proxyCa),
  ...rowsOf('S-09', chains),
];

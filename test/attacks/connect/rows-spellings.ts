// Spellings of a name or an address inside and outside a tunnel; each has exactly one reading (D-10 to D-14).
import type { ConnectRow } from './connect-script.ts';
import {
  type Row,
  rowsOf,
  utf8,
  head,
  get,
  withCredential,
  inside,
  greeting,
  refused,
  otherName,
  badName,
  refusedInside,
  arrives,
  injected,
  arrivesAt,
  tunnelled,
  unreachable,
} from './expectations.ts';

const API = 'api.test:443';
const MISMATCH = '421 authority_mismatch';

/** All spellings of a name are one name: checked, dialled and verified as `api.test`; the Host field keeps its bytes. */
const spellings: readonly ConnectRow[] = [
  ...rowsOf('D-10', [
    ['capitals', inside('API.TEST:443', 'api.test', [get('api.test')]), injected()],
    ['trailing-dot', inside('api.test.:443', 'api.test', [get('api.test')]), injected()],
    [
      'capitals-and-dot',
      inside('Api.Test.:443', 'api.test', [get('aPI.tEST.:443')]),
      injected('aPI.tEST.:443'),
    ],
    ['sni-in-capitals', inside(API, 'api.test', [get('api.test')], { serverName: 'API.TEST' }), injected()],
    ['sni-with-a-dot', inside(API, 'api.test', [get('api.test')], { serverName: 'api.test.' }), injected()],
    ['sni-with-two-dots', greeting(API, ['api.test..']), badName],
    [
      'host-with-two-dots',
      inside(API, 'api.test', [get('api.test..')]),
      refusedInside('400 host_invalid', 'label_invalid'),
    ],
    [
      'denied-in-capitals',
      { policy: 'denied', send: [head('CONNECT EVIL.TEST:443 HTTP/1.1')] },
      refused('403 access_denied'),
    ],
    [
      'denied-with-a-dot',
      { policy: 'denied', send: [head('CONNECT evil.test.:443 HTTP/1.1')] },
      refused('403 access_denied'),
    ],
    [
      'denied-subdomain-with-a-dot',
      { policy: 'denied', send: [head('CONNECT A.Evil.test.:443 HTTP/1.1')] },
      refused('403 access_denied'),
    ],
    [
      'unlisted-with-a-dot',
      { policy: 'listed', send: [head('CONNECT other.test.evil.test.:443 HTTP/1.1')] },
      refused('403 access_denied'),
    ],
    [
      'wildcard-in-capitals',
      inside('A.WILD.test.:443', 'a.wild.test', [get('a.wild.test')]),
      arrives('a.wild.test', withCredential(get('a.wild.test'))),
    ],
  ]),
  ...rowsOf('D-11', [
    [
      'a-label-of-a-bound-host',
      inside('XN--BCHER-KVA.test:443', 'xn--bcher-kva.test', [get('xn--bcher-kva.test')]),
      arrives('xn--bcher-kva.test', withCredential(get('xn--bcher-kva.test'))),
    ],
    [
      'u-label-in-host',
      inside('xn--bcher-kva.test:443', 'xn--bcher-kva.test', [get(utf8('bücher.test'))]),
      refusedInside('400 host_invalid', 'character_invalid'),
    ],
    [
      'a-label-of-a-confusable',
      { send: [head('CONNECT xn--pi-7kc.test:443 HTTP/1.1')] },
      unreachable('8.8.4.4:443', ['xn--pi-7kc.test']),
    ],
    [
      'a-label-that-decodes-to-nothing-legal',
      { send: [head('CONNECT xn--api.test:443 HTTP/1.1')] },
      unreachable('8.8.4.4:443', ['xn--api.test']),
    ],
    [
      'ideographic-full-stop-in-host',
      inside(API, 'api.test', [get(utf8('api。test'))]),
      refusedInside('400 host_invalid', 'character_invalid'),
    ],
    [
      'fullwidth-letters-in-host',
      inside(API, 'api.test', [get(utf8('ａｐｉ.test'))]),
      refusedInside('400 host_invalid', 'character_invalid'),
    ],
    ['ideographic-full-stop-in-sni', greeting(API, [utf8('api。test')]), badName],
    ['fullwidth-full-stop-in-sni', greeting(API, [utf8('api．test')]), badName],
    ['cyrillic-a-in-sni', greeting(API, [utf8('аpi.test')]), badName],
    ['long-s-in-sni', greeting(API, [utf8('api.teſt')]), badName],
    ['u-label-in-sni', greeting('xn--bcher-kva.test:443', [utf8('bücher.test')]), badName],
    ['confusable-a-label-in-sni', greeting(API, ['xn--pi-7kc.test']), otherName],
  ]),
  ...rowsOf('D-12', [
    ['nul-in-sni-before-the-bound-name', greeting(API, ['evil.test\0.api.test']), badName],
    ['nul-in-sni-after-the-bound-name', greeting(API, ['api.test\0.evil.test']), badName],
    ['nul-at-the-end-of-sni', greeting(API, ['api.test\0']), badName],
    ['nul-alone-in-sni', greeting(API, ['\0']), badName],
    ['escaped-nul-in-sni', greeting(API, ['evil.test%00.api.test']), badName],
    [
      'nul-in-host',
      inside(API, 'api.test', [get('api.test\0.evil.test')]),
      refusedInside('400 malformed_request'),
    ],
    [
      'escaped-nul-in-host',
      inside(API, 'api.test', [get('evil.test%00.api.test')]),
      refusedInside('400 host_invalid'),
    ],
  ]),
];

const portsAndAddresses: readonly ConnectRow[] = [
  ...rowsOf('D-13', [
    [
      'another-port-of-a-bound-host',
      inside('api.test:8443', 'api.test', [get('api.test:8443')]),
      injected('api.test:8443', { address: '8.8.1.1:8443' }),
    ],
    [
      'host-without-that-port',
      inside('api.test:8443', 'api.test', [get('api.test')]),
      refusedInside(MISMATCH),
    ],
    [
      'host-with-the-default-port',
      inside('api.test:8443', 'api.test', [get('api.test:443')]),
      refusedInside(MISMATCH),
    ],
    [
      'host-with-a-leading-zero',
      inside(API, 'api.test', [get('api.test:0443')]),
      refusedInside('400 host_invalid', 'port_invalid'),
    ],
    [
      'host-with-an-empty-port',
      inside(API, 'api.test', [get('api.test:')]),
      refusedInside('400 host_invalid', 'port_invalid'),
    ],
    [
      'host-with-two-ports',
      inside(API, 'api.test', [get('api.test:443:443')]),
      refusedInside('400 host_invalid', 'port_invalid'),
    ],
    [
      'port-of-the-rule',
      inside('narrow.test:8443', 'narrow.test', [get('narrow.test:8443')]),
      arrives('narrow.test', withCredential(get('narrow.test:8443')), { address: '8.8.1.1:8443' }),
    ],
    [
      'port-beside-the-rule-is-blind',
      inside('narrow.test:443', 'narrow.test', [get('narrow.test')]),
      {
        ...tunnelled('8.8.1.1:443', get('narrow.test'), { lookedUp: ['narrow.test'] }),
        certificateIssuer: 'origin',
        arrived: [{ at: 'api', bytes: get('narrow.test') }],
        requestedNames: ['narrow.test'],
      },
    ],
  ]),
  ...rowsOf(
    'D-14',
    [
      '[2606:4700::1111]',
      '[2606:4700:0:0:0:0:0:1111]',
      '[2606:4700:0000::0:1111]',
      '[2606:4700::0.0.17.17]',
    ].map(
      (host): Row => [
        `accepted-${host.length}-characters`,
        inside(`${host}:443`, '2606:4700::1111', [get('[2606:4700::1111]')]),
        arrivesAt('six', withCredential(get('[2606:4700::1111]')), '2606:4700::1111:443'),
      ],
    ),
  ),
  ...rowsOf('D-14', [
    [
      'host-in-another-spelling',
      inside('[2606:4700::1111]:443', '2606:4700::1111', [get('[2606:4700:0::1111]:443')]),
      arrivesAt('six', withCredential(get('[2606:4700:0::1111]:443')), '2606:4700::1111:443'),
    ],
    [
      'host-of-the-neighbour',
      inside('[2606:4700::1111]:443', '2606:4700::1111', [get('[2606:4700::1112]')]),
      refusedInside(MISMATCH),
    ],
    [
      'host-unbracketed',
      inside('[2606:4700::1111]:443', '2606:4700::1111', [get('2606:4700::1111')]),
      refusedInside('400 host_invalid', 'ipv6_unbracketed'),
    ],
    [
      'neighbour-of-a-bound-address',
      { send: [head('CONNECT [2606:4700::1112]:443 HTTP/1.1')] },
      unreachable('2606:4700::1112:443'),
    ],
    [
      'denied-range',
      { policy: 'denied', send: [head('CONNECT [2606:4700:0::77]:443 HTTP/1.1')] },
      refused('403 access_denied'),
    ],
    [
      'v4-mapped',
      { send: [head('CONNECT [::ffff:8.8.1.9]:443 HTTP/1.1')] },
      refused('403 address_private', { cause: 'embedded_v4' }),
    ],
  ]),
];

export const spellingRows: readonly ConnectRow[] = [...spellings, ...portsAndAddresses];

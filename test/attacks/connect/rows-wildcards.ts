// P-14: `*.wild.test` matches every name below, at any depth, but neither the apex nor a name that only has the same ending.
// The table of names is our own, modelled on the globs of stripe/smokescreen (pkg/smokescreen/acl/v1, MIT).
import type { ConnectRow } from './connect-script.ts';
import {
  type Row,
  rowsOf,
  arrives,
  get,
  greeting,
  head,
  inClear,
  inside,
  otherName,
  refused,
  tunnelled,
  unreachable,
  withCredential,
} from './expectations.ts';

const below: readonly string[] = [
  'b.wild.test',
  'x.y.z.wild.test',
  '0.wild.test',
  '_a.wild.test',
  '8.8.1.3.wild.test',
];

const covered = below.map(
  (name): Row => [
    `covers-${name}`,
    inside(`${name}:443`, name, [get(name)]),
    arrives(name, withCredential(get(name))),
  ],
);

/** Each resolves to an address without a listener: treated as a host without a rule, dialled, and nothing is injected. */
const otherNames: readonly string[] = [
  'awild.test',
  'a-wild.test',
  'a.wild.testx',
  'a.wild.test.nowhere.test',
  'wild.test.nowhere.test',
  'a.wild',
];

const hostsWithoutRule = otherNames.map(
  (name): Row => [
    `does-not-cover-${name}`,
    { send: [head(`CONNECT ${name}:443 HTTP/1.1`)] },
    unreachable('8.8.4.4:443', [name]),
  ],
);

const apex = (authority: string): Row => [
  `apex-${authority.length}-${/[A-Z]/.test(authority) ? 'in-capitals' : 'as-it-is'}`,
  inClear(authority, [get('a.wild.test')]),
  tunnelled('8.8.1.3:80', get('a.wild.test'), { lookedUp: ['wild.test'] }),
];

const notNames: readonly (readonly [name: string, authority: string, cause: string])[] = [
  ['empty-label', '.wild.test:443', 'label_invalid'],
  ['hyphen-label', '-.wild.test:443', 'label_invalid'],
  ['two-dots', 'a..wild.test:443', 'label_invalid'],
  ['double-star', '**.wild.test:443', 'character_invalid'],
  ['question-mark', '?.wild.test:443', 'trailing_junk'],
  ['braces', '{a,b}.wild.test:443', 'character_invalid'],
  ['class', 'a[b].wild.test:443', 'label_invalid'],
  ['encoded-dot', 'a%2ewild.test:443', 'character_invalid'],
  ['path-before-it', 'evil.test/.wild.test:443', 'trailing_junk'],
  ['query-before-it', 'evil.test?.wild.test:443', 'trailing_junk'],
  ['port-before-it', 'evil.test:443.wild.test:443', 'port_invalid'],
  ['backslash-before-it', 'evil.test\\.wild.test:443', 'trailing_junk'],
  ['user-before-it', 'evil.test@.wild.test:443', 'userinfo'],
  ['user-after-it', 'a.wild.test@evil.test:443', 'userinfo'],
  ['comma-after-it', 'a.wild.test,evil.test:443', 'character_invalid'],
];

const lists: readonly Row[] = [
  [
    'denied-below',
    { policy: 'denied', send: [head('CONNECT x.y.evil.test:443 HTTP/1.1')] },
    refused('403 access_denied'),
  ],
  [
    'not-denied-that-only-ends-so',
    inClear('notevil.test:80', [get('notevil.test')], { policy: 'denied' }),
    tunnelled('8.8.1.3:80', get('notevil.test'), { lookedUp: ['notevil.test'] }),
  ],
  [
    'denied-range-after-a-name',
    { policy: 'denied', send: [head('CONNECT behind.test:443 HTTP/1.1')] },
    refused('403 access_denied', { lookedUp: ['behind.test'] }),
  ],
  [
    'listed-below',
    inClear('a.sub.test:80', [get('a.sub.test')], { policy: 'listed' }),
    tunnelled('8.8.1.2:80', get('a.sub.test'), { lookedUp: ['a.sub.test'] }),
  ],
  [
    'not-listed-that-only-ends-so',
    { policy: 'listed', send: [head('CONNECT asub.test:443 HTTP/1.1')] },
    refused('403 access_denied'),
  ],
  [
    'not-listed-that-begins-so',
    { policy: 'listed', send: [head('CONNECT a.sub.test.evil.test:443 HTTP/1.1')] },
    refused('403 access_denied'),
  ],
  ['sni-of-the-apex', greeting('a.wild.test:443', ['wild.test']), otherName],
  ['sni-of-a-name-below', greeting('a.wild.test:443', ['b.a.wild.test']), otherName],
];

const rows: readonly Row[] = [
  ...covered,
  ...hostsWithoutRule,
  ...['wild.test:80', 'Wild.TEST:80', 'wild.test.:80'].map(apex),
  ...notNames.map(
    ([name, authority, cause]): Row => [
      name,
      { send: [head(`CONNECT ${authority} HTTP/1.1`)] },
      refused('400 authority_invalid', { cause }),
    ],
  ),
  ...lists,
];

export const wildcardRows: readonly ConnectRow[] = rowsOf('P-14', rows);

// Documents and requests that are likely to match: few names, written in many ways. It knows how a request is written
// and what its parts mean, never what becomes of it.
import * as fc from 'fast-check';
import { type ModelField, type ModelHostPort, type ModelRequest, asHost } from './request-model.ts';
import type {
  ModelAuthority,
  ModelCallback,
  ModelConfig,
  ModelHeader,
  ModelHost,
  ModelRule,
} from './rule-model.ts';

type Known = ModelHost & {
  /** Other spellings of the same host, as an authority has it. */
  readonly spellings: readonly string[];
};

const hosts: readonly Known[] = [
  known('a.test', 'A.Test', 'a.test.'),
  known('b.a.test', 'B.A.TEST.'),
  known('c.b.a.test', 'c.B.a.test'),
  known('x.test', 'X.test.'),
  known('deep.x.test', 'Deep.x.Test'),
  known('xa.test', 'xA.test'),
  known('localhost', 'LocalHost', 'localhost.'),
  known('api.localhost', 'API.localhost'),
  { host: '192.0.2.7', kind: 'ipv4', spellings: ['192.0.2.7'] },
  { host: '10.1.2.3', kind: 'ipv4', spellings: ['10.1.2.3'] },
  { host: '127.0.0.1', kind: 'ipv4', spellings: ['127.0.0.1'] },
  { host: '2001:db8::7', kind: 'ipv6', spellings: ['[2001:db8::7]', '[2001:DB8:0::7]', '[2001:0db8::0007]'] },
];
const ports: readonly number[] = [443, 443, 80, 8443];

const hostPatterns: readonly string[] = [
  ...hosts.map(({ host, kind }) => (kind === 'ipv6' ? `[${host}]` : host)),
  ...['a.test', 'b.a.test', 'localhost', '*.a.test', '*.b.a.test', '*.x.test', '*.localhost'],
];
const pathPatterns: readonly string[] = [
  ...['/v1', '/v1/', '/v1/*', '/v1/**', '/v1*', '/v1/x', '/*', '/admin/*', '/a%20b'],
  ...['/repos/*/issues', '/repos/*/issues/*', '/m/*:run', '/v2/*', '/a*b*c'],
];
const listEntries: readonly string[] = [
  ...['.x.test', '*.x.test', 'x.test', 'localhost', 'b.a.test', 'a.test:8443', '*.b.a.test', 'xa.test:8443'],
  ...[
    '10.0.0.0/8',
    '192.0.0.0/16',
    '192.0.2.7',
    '2001:db8::/32',
    '[2001:db8::7]:8443',
    '2001:db8::7',
    'xa.test',
  ],
];
const headerNames: readonly string[] = ['Authorization', 'X-Api-Key', 'x_tenant', 'Cookie', 'X-Extra'];
/** In every spelling: of what is injected, of what ends here, of what is neither. */
const sentNames: readonly string[] = [
  ...['authorization', 'AUTHORIZATION', 'Authorization', 'X-Api-Key', 'x_api_key', 'X_API-KEY', 'X-Tenant'],
  ...[
    'x_tenant',
    'cookie',
    'Cookie',
    'x-extra',
    'Authorization2',
    'XAuthorization',
    'X-Api',
    'Accept',
    'User-Agent',
  ],
  ...[
    'X-Original-URL',
    'x_rewrite_url',
    'X-Forwarded-Uri',
    'TE',
    'te',
    'Trailer',
    'Keep-Alive',
    'HTTP2-Settings',
  ],
  ...['Proxy-Authorization', 'Proxy-Connection', 'proxy-x', 'Upgrade', 'X-Hop'],
];
const options: readonly string[] = [
  ...['close', 'keep-alive', 'Upgrade', 'Authorization', 'x-api-key', 'X_Api_Key', 'X-Tenant', 'cookie'],
  ...['X-Hop', 'te', 'accept', 'X-Extra'],
];
const methods: readonly string[] = [
  ...[
    'GET',
    'GET',
    'GET',
    'GET',
    'GET',
    'GET',
    'GET',
    'GET',
    'POST',
    'POST',
    'PUT',
    'PUT',
    'DELETE',
    'DELETE',
  ],
  ...['PATCH', 'HEAD', 'OPTIONS', 'OPTIONS', 'PROPFIND', 'TRACE', 'TRACK', 'CONNECT'],
];
const segments: readonly string[] = [
  ...[
    'v1',
    'v1',
    'v2',
    'v10',
    'x',
    'repos',
    'issues',
    'm',
    'k:run',
    'a%20b',
    'admin',
    '%61dmin',
    'aXbYc',
    '',
  ],
  ...['x;p=1', 'v1;q', 'v%31', 'a%2Fb', 'caf%C3%A9', '%76%31', 'a%253Bb', '...', '.git'],
];
const trickySegments: readonly string[] = [
  ...[
    '..',
    '.',
    '%2e%2e',
    '%252e',
    '..;x',
    '%2f',
    'v1%2fx',
    'a%5cb',
    '%5c..',
    'x%2f..%2fv1',
    '%c0%ae',
    '%00',
    '%zz',
  ],
  ...['%3f', 'x%23y', '%E9', 'v1%3bx', '%25%32%66', 'x%2fx%2fissues', 'a%2f', 'x;%2fk:run', ';v'],
];

const header: fc.Arbitrary<Omit<ModelHeader, 'value'>> = fc.record({
  name: fc.constantFrom(...headerNames),
  type: fc.constantFrom('plaintext', 'opaque', 'workspace_secret'),
});
const hostList: fc.Arbitrary<string[]> = fc.array(
  fc
    .tuple(fc.constantFrom(...hostPatterns), fc.constantFrom('', '', '', ':443', ':8443'))
    .map(([host, port]) => `${host}${port}`),
  { minLength: 2, maxLength: 6 },
);

const ruleParts = fc.record({
  enabled: often(6),
  match_hosts: hostList,
  match_paths: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 3, arbitrary: fc.array(fc.constantFrom(...pathPatterns), { minLength: 1, maxLength: 3 }) },
  ),
  headers: fc.uniqueArray(header, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
  no_proxy: fc.array(fc.constantFrom(...listEntries), { maxLength: 1 }),
});
const callbackParts = fc.record({ enabled: often(6), match_hosts: hostList });

/** Each value names its rule. */
const documents: fc.Arbitrary<ModelConfig> = fc
  .record({
    rules: fc.array(ruleParts, { minLength: 1, maxLength: 5 }),
    callbacks: fc.array(callbackParts, { minLength: 1, maxLength: 3 }),
    no_proxy: fc.array(fc.constantFrom(...listEntries), { maxLength: 3 }),
    access: fc.constantFrom('none', 'none', 'none', 'allow', 'allow', 'deny'),
    listedPort: fc.constantFrom(...ports),
    listed: fc.array(fc.constantFrom(...listEntries), { minLength: 1, maxLength: 4 }),
    hasInner: often(3),
  })
  .map(({ rules, callbacks, no_proxy, access, listed, listedPort, hasInner }) => {
    const named: ModelRule[] = rules.map((rule, i) => ({
      ...rule,
      name: `rule-${i}`,
      no_proxy: hasInner ? [] : rule.no_proxy,
      headers: rule.headers.map((one) => ({ ...one, value: valueOf(one.type, `rule-${i}-${one.name}`) })),
    }));
    const called: ModelCallback[] = callbacks.map((callback, i) => ({
      ...callback,
      name: `callback-${i}`,
      url: 'https://callbacks.example.com/headers',
      ttl_seconds: 60,
    }));
    const hostsOf = [...named, ...called].flatMap(({ match_hosts }) => match_hosts);
    const withPort = hosts.slice(3).map((one) => asHost({ ...one, port: listedPort }));
    return {
      rules: named,
      callbacks: called,
      no_proxy,
      ...(access === 'allow' && {
        access_control: { allow_list: [...new Set([...hostsOf, ...listed, ...withPort])] },
      }),
      ...(access === 'deny' && { access_control: { deny_list: [...new Set(listed)] } }),
    };
  });

export type Pairing = {
  readonly config: ModelConfig;
  readonly allowLoopback: boolean;
  /** The listed destinations of `inject_cleartext`. */
  readonly clearListed: readonly string[];
  /** By the number of the callback: whether it fails. */
  readonly failing: readonly boolean[];
  readonly requests: readonly ModelRequest[];
};

const authority: fc.Arbitrary<{ readonly to: ModelAuthority; readonly spelled: string }> = fc
  .tuple(fc.constantFrom(...hosts), fc.constantFrom(...ports), fc.nat(5))
  .map(([{ host, kind, spellings }, port, spelling]) => ({
    to: { host, kind, port },
    spelled: `${spellings[spelling % spellings.length]}:${port}`,
  }));

const path: fc.Arbitrary<string> = fc
  .record({
    plain: fc.array(fc.constantFrom(...segments), { minLength: 1, maxLength: 4 }),
    tricky: fc.oneof(
      { weight: 2, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom(...trickySegments) },
    ),
    at: fc.nat(4),
    query: fc.constantFrom('', '', '', '?q=1', '?a=/../b', '?%2e%2e'),
  })
  .map(({ plain, tricky, at, query }) => {
    const all = tricky === null ? plain : plain.toSpliced(at, 0, tricky);
    return `/${all.join('/')}${query}`;
  });

const field: fc.Arbitrary<ModelField> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ name: fc.constantFrom(...sentNames), value: fc.constantFrom('agent', '') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      name: fc.constantFrom('Connection', 'connection'),
      value: fc
        .array(fc.constantFrom(...options), { minLength: 1, maxLength: 3 })
        .map((list) => list.join(', ')),
    }),
  },
);
const rareFields: fc.Arbitrary<readonly ModelField[]> = fc.constantFrom(
  ...Array.from({ length: 16 }, () => []),
  [{ name: 'Connection', value: 'X-Hop, Host' }],
  [{ name: 'Connection', value: 'Content-Length' }],
  [
    { name: 'Connection', value: 'Upgrade' },
    { name: 'Upgrade', value: 'websocket' },
  ],
  [
    { name: 'Connection', value: 'upgrade' },
    { name: 'Upgrade', value: 'h2c' },
  ],
);

/** How the Host fields relate to the authority: mostly they agree. */
type HostManner = 'same' | 'bare' | 'other_host' | 'other_port' | 'none' | 'two' | 'broken';

const request: fc.Arbitrary<ModelRequest> = fc
  .record({
    entry: fc.constantFrom('tls', 'tls', 'tls', 'tls', 'clear', 'plain', 'plain'),
    at: authority,
    other: authority,
    method: fc.constantFrom(...methods),
    minor: fc.constantFrom(1, 1, 1, 1, 1, 1, 0),
    path,
    form: fc.nat(30),
    manner: fc.constantFrom<HostManner[]>(
      ...Array.from({ length: 16 }, (): HostManner => 'same'),
      ...Array.from({ length: 6 }, (): HostManner => 'bare'),
      ...(['other_host', 'other_port', 'none', 'two', 'broken'] as const),
    ),
    fields: fc.array(field, { maxLength: 5 }),
    rare: rareFields,
  })
  .map(({ entry, at, other, method, minor, path: authored, form, manner, fields, rare }) => {
    const scheme = entry === 'tls' ? 'https://' : 'http://';
    const isAbsolute = entry === 'plain' ? form !== 0 : form < 3;
    const isWhole = form === 4;
    return {
      entry,
      ...at,
      method,
      minor,
      path: isAbsolute && isWhole ? '' : !isAbsolute && form > 28 ? '*' : authored,
      absolute: !isAbsolute ? '' : form === 1 ? 'https://' : scheme,
      named:
        entry !== 'plain' && form === 2
          ? { text: other.spelled, to: other.to }
          : { text: at.spelled, to: at.to },
      hosts: hostsFor(manner, at, other.to, entry === 'tls' ? 443 : 80),
      fields: [...fields, ...rare],
    } as const;
  });

export const pairings: fc.Arbitrary<Pairing> = fc.record({
  config: documents,
  allowLoopback: fc.boolean(),
  clearListed: fc.uniqueArray(
    authority.map(({ to }) => asHost(to)),
    { maxLength: 4 },
  ),
  failing: fc.array(fc.constantFrom(true, false, false), { minLength: 3, maxLength: 3 }),
  requests: fc.array(request, { minLength: 25, maxLength: 25 }),
});

/** The head as the client writes it. */
export function wireOf({
  method,
  absolute,
  named,
  path: target,
  minor,
  hosts: written,
  fields,
}: ModelRequest): string {
  const whole = absolute === '' ? target : `${absolute}${named.text}${target}`;
  const lines = [...written.map(({ text }) => ({ name: 'Host', value: text })), ...fields];
  return [
    `${method} ${whole} HTTP/1.${minor}`,
    ...lines.map(({ name, value }) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');
}

/** What the field holds, before any placeholder is filled. */
function valueOf(type: ModelHeader['type'], mark: string): string {
  const word = mark.toUpperCase().replaceAll('-', '_');
  return type === 'workspace_secret' ? `Bearer {${word}}` : `${type}-of-${mark}`;
}

function hostsFor(
  manner: HostManner,
  { to, spelled }: { readonly to: ModelAuthority; readonly spelled: string },
  other: ModelAuthority,
  defaultPort: number,
): ModelRequest['hosts'] {
  const same = { text: spelled, to };
  const bare = (one: ModelAuthority): { readonly text: string; readonly to: ModelHostPort } =>
    one.port === defaultPort
      ? { text: asHost(one, one.port), to: { ...one, port: undefined } }
      : { text: asHost(one), to: one };
  switch (manner) {
    case 'same':
      return [same];
    case 'bare':
      return [bare(to)];
    case 'other_host':
      return [bare({ ...other, port: to.port })];
    case 'other_port':
      return [bare({ ...to, port: to.port === 443 ? 80 : 443 })];
    case 'none':
      return [];
    case 'two':
      return [same, same];
    case 'broken':
      return [{ text: `user@${spelled}`, to: undefined }];
  }
}

function known(host: string, ...others: readonly string[]): Known {
  return { host, kind: 'name', spellings: [host, ...others] };
}

/** False once in so many. */
function often(times: number): fc.Arbitrary<boolean> {
  return fc.nat(times - 1).map((n) => n !== 0);
}

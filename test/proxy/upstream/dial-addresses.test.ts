// What is judged before a connection is made. The functions that connect are replaced, so that a mistake in the code
// under test is a recorded call and never a packet.
import type * as net from 'node:net';
import { PassThrough } from 'node:stream';
import type * as tls from 'node:tls';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { BoundedCache } from '../../../src/base/bounded-cache.ts';
import { parseCidr } from '../../../src/base/address.ts';
import type { EgressRules } from '../../../src/proxy/upstream/address-guard.ts';
import { type DialTarget, createDialler } from '../../../src/proxy/upstream/dial.ts';
import { createConnectionQuota } from '../../../src/proxy/upstream/connection-quota.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import type { ResolvedAddress } from '../../../src/proxy/upstream/resolver.ts';
import type { TrustSet } from '../../../src/tls/trust.ts';
import { authorityOf } from '../request-head.ts';
import { closedEgress } from '../../support/closed-egress.ts';

type Made = {
  readonly by: 'tcp' | 'tls';
  readonly host: unknown;
  readonly port: unknown;
  readonly addresses: unknown;
};
const made: Made[] = [];

vi.mock('node:net', async (original) => ({ ...(await original<typeof net>()), connect: record('tcp') }));
vi.mock('node:tls', async (original) => ({ ...(await original<typeof tls>()), connect: record('tls') }));

function record(by: 'tcp' | 'tls') {
  return (options: net.TcpNetConnectOpts) => {
    options.lookup?.('ignored', { all: true }, (_error, addresses) =>
      made.push({ by, host: options.host, port: options.port, addresses }),
    );
    const socket = new PassThrough();
    setImmediate(() => socket.destroy(new Error('no connections in this test')));
    return socket;
  };
}

const sidecar: EgressRules = {
  ...closedEgress,
  isOwnListener: (address, port) => address.text === '198.18.0.1' && port === 443,
};

/** The code of a refusal before any connection, or `connects`; with the number of lookups. */
async function outcome(
  to: Partial<DialTarget> & { readonly at?: string },
  responses: readonly string[],
  egress: Partial<EgressRules> = {},
): Promise<string> {
  let lookups = 0;
  const dialler = createDialler({
    resolver: {
      resolve: async () => {
        lookups += 1;
        return responses.map(
          (address): ResolvedAddress => ({ address, family: address.includes(':') ? 6 : 4 }),
        );
      },
      forget: () => {},
    },
    egress: { ...sidecar, ...egress },
    trust: { id: 'none', context: undefined, certificates: [] } as unknown as TrustSet, // nothing is verified here
    sessions: new BoundedCache({ max: 1 }),
    connectMs: 1_000,
    quota: createConnectionQuota(100),
  });
  const { at = 'x.test:443', ...rest } = to;
  const target: DialTarget = {
    authority: authorityOf(at),
    scheme: 'https',
    alpn: ['http/1.1'],
    named: 'no',
    isPortListed: false,
    denies: () => false,
    ...rest,
  };
  const result = await dialler.dial(target, new AbortController().signal);
  const verdict = made.length > 0 ? 'connects' : isRefusal(result) ? result.refused : 'a socket';
  return `${verdict}, ${lookups} lookups`;
}

beforeEach(() => void made.splice(0));

describe('a name', () => {
  const rows: readonly (readonly [
    string,
    readonly string[],
    Partial<DialTarget>,
    Partial<EgressRules>,
    string,
  ])[] = [
    ['of a public address', ['203.0.112.1'], {}, {}, 'connects'],
    ['of the metadata service', ['169.254.169.254'], {}, {}, 'address_denied'],
    [
      'of the metadata service, named by a rule',
      ['169.254.169.254'],
      { named: 'exact' },
      {},
      'address_denied',
    ],
    [
      'of the metadata service, with everything allowed',
      ['169.254.169.254'],
      { named: 'exact' },
      { allowAllPrivate: true, allowLoopback: true },
      'address_denied',
    ],
    ['of a public and then a private address', ['203.0.112.1', '10.0.0.1'], {}, {}, 'address_private'],
    ['of a public address and IPv6 metadata', ['203.0.112.1', 'fd00:ec2::254'], {}, {}, 'address_denied'],
    ['of loopback', ['127.0.0.1'], {}, {}, 'address_private'],
    ['of loopback in IPv6', ['203.0.112.1', '::1'], {}, {}, 'address_private'],
    ['of a private address, without a rule', ['10.0.0.1'], {}, {}, 'address_private'],
    ['of a private address, of an exact rule', ['10.0.0.1'], { named: 'exact' }, {}, 'connects'],
    ['of a private address, of a wildcard rule', ['10.0.0.1'], { named: 'wildcard' }, {}, 'address_private'],
    [
      'of a private address, of an exact rule over http',
      ['10.0.0.1'],
      { named: 'exact', scheme: 'http' },
      {},
      'address_private',
    ],
    [
      'of a private address, of an exact rule, in a tunnel',
      ['10.0.0.1'],
      { named: 'exact', scheme: 'tunnel' },
      {},
      'address_private',
    ],
    [
      'of a private address, where rules open none',
      ['10.0.0.1'],
      { named: 'exact' },
      { privateByRule: 'never' },
      'address_private',
    ],
    [
      'of a listed private address',
      ['10.1.0.1'],
      {},
      { allowCidrs: [parseCidr('10.1.0.0/16')].flatMap((c) => c ?? []) },
      'connects',
    ],
    ['of our own listener', ['198.18.0.1'], { named: 'exact' }, { allowAllPrivate: true }, 'address_denied'],
    [
      'of an address in the deny_list',
      ['203.0.112.1', '203.0.112.9'],
      { denies: ({ text }) => text === '203.0.112.9' },
      {},
      'access_denied',
    ],
  ];
  it.each(rows)('%s', async (_, responses, target, egress, expected) => {
    expect(await outcome(target, responses, egress)).toBe(`${expected}, 1 lookups`);
  });

  it('is looked up once, and each attempt goes to one of the judged addresses', async () => {
    await outcome({}, ['203.0.112.1', '2606:4700::1']);
    const attempt = { by: 'tls', host: 'x.test', port: 443 };
    expect(made).toEqual([
      { ...attempt, addresses: [{ address: '203.0.112.1', family: 4 }] },
      { ...attempt, addresses: [{ address: '2606:4700::1', family: 6 }] },
    ]);
  });
});

describe('a port', () => {
  const rows: readonly (readonly [string, string, Partial<DialTarget>, Partial<EgressRules>, string])[] = [
    ['22 of a host that nothing names', 'x.test:22', {}, {}, 'port_denied, 0 lookups'],
    ['22 of a host that a rule names', 'x.test:22', { named: 'exact' }, {}, 'connects, 1 lookups'],
    ['22 of a host that a wildcard names', 'x.test:22', { named: 'wildcard' }, {}, 'connects, 1 lookups'],
    ['22 that the allow_list names', 'x.test:22', { isPortListed: true }, {}, 'connects, 1 lookups'],
    ['22 that the operator opens', 'x.test:22', {}, { ports: new Set([22]) }, 'connects, 1 lookups'],
    ['443 that the operator closes', 'x.test:443', {}, { ports: new Set([80]) }, 'port_denied, 0 lookups'],
    [
      '22 of a host that is not on loopback after all',
      'x.test:22',
      {},
      { allowLoopback: true },
      'port_denied, 1 lookups',
    ],
  ];
  it.each(rows)('%s', async (_, at, target, egress, expected) => {
    expect(await outcome({ at, ...target }, ['203.0.112.1'], egress)).toBe(expected);
  });

  it('any, of a host on loopback where loopback is allowed', async () => {
    expect(await outcome({ at: 'x.test:9' }, ['127.0.0.1'], { allowLoopback: true })).toBe(
      'connects, 1 lookups',
    );
  });

  it('any, of a host that is on loopback and elsewhere, is refused', async () => {
    const responses = ['127.0.0.1', '203.0.112.1'];
    expect(await outcome({ at: 'x.test:9' }, responses, { allowLoopback: true })).toBe(
      'port_denied, 1 lookups',
    );
  });
});

describe('an address', () => {
  it.each([
    ['169.254.169.254:80', 'address_denied'],
    ['[fd00:ec2::254]:80', 'address_denied'],
    ['[::ffff:169.254.169.254]:80', 'address_denied'],
    ['[64:ff9b::a9fe:a9fe]:443', 'address_denied'],
    ['0.0.0.0:80', 'address_denied'],
    ['[::]:80', 'address_denied'],
    ['127.0.0.1:80', 'address_private'],
    ['[::1]:80', 'address_private'],
    ['10.0.0.1:443', 'address_private'],
    ['[::ffff:10.0.0.1]:443', 'address_private'],
    ['100.64.1.1:443', 'address_private'],
  ])('%s is refused without a lookup', async (at, expected) => {
    expect(await outcome({ at, scheme: 'tunnel' }, [])).toBe(`${expected}, 0 lookups`);
  });
});

// The cases that are compared, and the loads for each of them. A case is a path to the same origin, and the process whose
// CPU time is measured.
import type { Target } from './connection.ts';
import type { OriginCounts } from './origin.ts';
import type { Peer } from './peer.ts';
import type { Sallyport } from './sallyport.ts';
import { type Scene, hosts, requestTo } from './scene.ts';

export type CaseName = 'direct' | 'tunnel' | 'intercepted' | 'rule' | 'callback' | 'nginx' | 'haproxy';

export type BenchCase = {
  readonly name: CaseName;
  readonly about: string;
  readonly target: Target;
  /** The process between client and origin. */
  readonly pid: number | undefined;
  /** The protocols between client and process, which select its loads. */
  readonly protocols: readonly Protocol[];
  /** The protocol to the origin, when it differs from that of the client. */
  readonly upstream?: Protocol;
};

export type Protocol = keyof OriginCounts;

export type LoadName = 'h1_1' | 'h1_32' | 'h2_4x8' | 'h2_4x100' | 'rate';

export type Load = {
  readonly name: LoadName;
  readonly clients: number;
  /** Concurrent requests on each connection, over HTTP/2. */
  readonly streams?: number;
  readonly durationMs: number;
  readonly ratePerSecond?: number;
};

export type Plan = {
  /** Connections under the loads with more than one client. */
  readonly clients: number;
  readonly rounds: number;
  readonly h2Rounds: number;
  /** The unmeasured time of each case before the first round, for compilers and caches. */
  readonly warmUpMs: number;
  readonly h2WarmUpMs: number;
  /** The same for new connections, before each measurement. */
  readonly settleMs: number;
  readonly durationMs: Readonly<Record<LoadName, number>>;
  readonly starts: number;
  /** After these times from the start of the benchmark, in the order of the loads, a busy machine runs fewer rounds. */
  readonly lastRoundMs: { readonly closed: number; readonly rate: number; readonly h2: number };
};

export const plans: Readonly<Record<'quick' | 'full' | 'tiny', Plan>> = {
  quick: {
    clients: 32,
    rounds: 5,
    h2Rounds: 3,
    warmUpMs: 1000,
    h2WarmUpMs: 2000,
    settleMs: 40,
    durationMs: { h1_1: 300, h1_32: 550, h2_4x8: 450, h2_4x100: 450, rate: 350 },
    starts: 5,
    lastRoundMs: { closed: 32_000, rate: 45_000, h2: 70_000 },
  },
  full: {
    clients: 32,
    rounds: 11,
    h2Rounds: 11,
    warmUpMs: 3000,
    h2WarmUpMs: 6000,
    settleMs: 100,
    durationMs: { h1_1: 1500, h1_32: 1500, h2_4x8: 1500, h2_4x100: 1500, rate: 1500 },
    starts: 11,
    lastRoundMs: { closed: Infinity, rate: Infinity, h2: Infinity },
  },
  // For its own test: everything runs, the figures mean nothing.
  tiny: {
    clients: 4,
    rounds: 1,
    h2Rounds: 1,
    warmUpMs: 20,
    h2WarmUpMs: 20,
    settleMs: 5,
    durationMs: { h1_1: 30, h1_32: 30, h2_4x8: 30, h2_4x100: 30, rate: 30 },
    starts: 1,
    lastRoundMs: { closed: Infinity, rate: Infinity, h2: Infinity },
  },
};

const both = ['h1', 'h2'] as const;

export function benchCases(scene: Scene, sallyport: Sallyport, peers: Peers): readonly BenchCase[] {
  const { originPort, caPem } = scene;
  const { port, child } = sallyport;
  const around = (host: string, folder: '/v0' | '/v1'): Pick<Target, 'host' | 'request'> => ({
    host,
    request: requestTo(`${host}:${originPort}`, folder),
  });
  const through = (host: string, folder: '/v0' | '/v1', trusted = sallyport.caPem): Target => ({
    ...around(host, folder),
    port,
    connectTo: `${host}:${originPort}`,
    caPem: trusted,
  });
  const ours = { pid: child.pid, protocols: ['h1'] } as const;
  return [
    {
      name: 'direct',
      about: 'client to origin, no proxy: the ceiling of client and origin',
      target: { ...around(hosts.rule, '/v0'), port: originPort, caPem },
      pid: undefined,
      protocols: both,
    },
    {
      name: 'tunnel',
      about: 'no_proxy, bytes forwarded unread',
      target: through(hosts.tunnel, '/v0', caPem),
      ...ours,
    },
    {
      name: 'intercepted',
      about: 'a path that no rule matches: nothing injected',
      target: through(hosts.rule, '/v0'),
      ...ours,
    },
    {
      name: 'rule',
      about: 'an opaque header of a rule',
      target: through(hosts.rule, '/v1'),
      ...ours,
      protocols: both,
    },
    {
      name: 'callback',
      about: 'the header of a callback, called once',
      target: through(hosts.callback, '/v1'),
      ...ours,
    },
    ...peerCases(scene, peers),
  ];
}

type Peers = { readonly nginx: Peer | undefined; readonly haproxy: Peer | undefined };

function peerCases({ originPort, caPem }: Scene, { nginx, haproxy }: Peers): readonly BenchCase[] {
  const request = requestTo(`${hosts.rule}:${originPort}`, '/v1');
  const target = (port: number): Target => ({ host: hosts.rule, request, port, caPem });
  const cases: BenchCase[] = [];
  if (nginx) {
    cases.push({
      name: 'nginx',
      about: 'fixed reverse proxy, reached with TLS without CONNECT; HTTP/1.1 to the origin',
      target: target(nginx.port),
      pid: nginx.workerPid,
      protocols: both,
      upstream: 'h1',
    });
  }
  if (haproxy) {
    cases.push({
      name: 'haproxy',
      about: 'the same over HTTP/2 on both sides',
      target: target(haproxy.port),
      pid: haproxy.workerPid,
      protocols: ['h2'],
    });
  }
  return cases;
}

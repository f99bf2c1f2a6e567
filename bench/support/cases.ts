// The cases that are compared and the loads that each of them is put under. A case is a way to the same origin, and
// the process whose CPU it costs.
import type { Target } from './connection.ts';
import type { Nginx } from './nginx.ts';
import type { Sallyport } from './sallyport.ts';
import { type Scene, hosts, requestTo } from './scene.ts';

export type CaseName = 'direct' | 'tunnel' | 'intercepted' | 'rule' | 'callback' | 'nginx';

export type BenchCase = {
  readonly name: CaseName;
  readonly about: string;
  readonly target: Target;
  /** The process between client and origin. */
  readonly pid: number | undefined;
};

export type LoadName = 'h1_1' | 'h1_32' | 'rate';

export type Load = {
  readonly name: LoadName;
  readonly clients: number;
  readonly durationMs: number;
  readonly ratePerSecond?: number;
};

export type Plan = {
  /** Connections under the loads that are not of one client. */
  readonly clients: number;
  readonly rounds: number;
  /** Each case runs so long, unmeasured, before the first round: compilers and caches settle. */
  readonly warmUpMs: number;
  /** The same for new connections, before each measurement. */
  readonly settleMs: number;
  readonly durationMs: Readonly<Record<LoadName, number>>;
  readonly starts: number;
  /** When a busy machine cuts rounds, from the start of the benchmark: those in closed loop, those at a constant rate. */
  readonly lastRoundMs: { readonly closed: number; readonly rate: number };
};

export const plans: Readonly<Record<'quick' | 'full' | 'tiny', Plan>> = {
  quick: {
    clients: 32,
    rounds: 5,
    warmUpMs: 1000,
    settleMs: 40,
    durationMs: { h1_1: 350, h1_32: 700, rate: 450 },
    starts: 5,
    lastRoundMs: { closed: 48_000, rate: 70_000 },
  },
  full: {
    clients: 32,
    rounds: 11,
    warmUpMs: 3000,
    settleMs: 100,
    durationMs: { h1_1: 1500, h1_32: 1500, rate: 1500 },
    starts: 11,
    lastRoundMs: { closed: Infinity, rate: Infinity },
  },
  // For its own test: everything runs, no figure means anything.
  tiny: {
    clients: 4,
    rounds: 1,
    warmUpMs: 20,
    settleMs: 5,
    durationMs: { h1_1: 30, h1_32: 30, rate: 30 },
    starts: 1,
    lastRoundMs: { closed: Infinity, rate: Infinity },
  },
};

export function benchCases(
  scene: Scene,
  sallyport: Sallyport,
  nginx: Nginx | undefined,
): readonly BenchCase[] {
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
  const pid = child.pid;
  const cases: BenchCase[] = [
    {
      name: 'direct',
      about: 'client to origin, no proxy: the ceiling of client and origin',
      target: { ...around(hosts.rule, '/v0'), port: originPort, caPem },
      pid: undefined,
    },
    {
      name: 'tunnel',
      about: 'no_proxy, bytes relayed unread',
      target: through(hosts.tunnel, '/v0', caPem),
      pid,
    },
    {
      name: 'intercepted',
      about: 'a path that no rule matches: nothing injected',
      target: through(hosts.rule, '/v0'),
      pid,
    },
    { name: 'rule', about: 'an opaque header of a rule', target: through(hosts.rule, '/v1'), pid },
    {
      name: 'callback',
      about: 'the header of a callback, asked once',
      target: through(hosts.callback, '/v1'),
      pid,
    },
  ];
  if (nginx) {
    cases.push({
      name: 'nginx',
      about: 'fixed reverse proxy, reached by TLS without CONNECT',
      target: { ...around(hosts.rule, '/v1'), port: nginx.port, caPem },
      pid: nginx.workerPid,
    });
  }
  return cases;
}

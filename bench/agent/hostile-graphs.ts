// What graphs that misbehave do to everybody else: one at a time, while /ok is asked at a constant rate and another client waits
// for ordinary runs. The endless loop comes last: its worker is busy with it until the server ends that worker.
import { percentilesOf } from '../support/percentiles.ts';
import { cancelRun, startRunOf } from './background-runs.ts';
import type { RunClients } from './run-clients.ts';
import type { AgentServer } from './servers.ts';

export type Misbehaviour = 'nothing' | 'emit' | 'allocate' | 'loop';
export const misbehaviours: readonly Misbehaviour[] = ['nothing', 'emit', 'allocate', 'loop'];

export type Bystanders = {
  readonly graph: Misbehaviour;
  readonly okP50Ms: number;
  readonly okP99Ms: number;
  readonly okCount: number;
  /** Ordinary runs beside it. */
  readonly runs: number;
  readonly runP99Ms: number;
  /** Of the events that a client has read meanwhile. */
  readonly megabytesPerSecond: number;
};

const OK_A_SECOND = 100;
const WAITING_CLIENTS = 2;

export type BystanderClients = {
  readonly clients: RunClients;
  readonly waiting: RunClients;
  readonly reading: RunClients;
};

export async function measureBystanders(
  { clients, waiting, reading }: BystanderClients,
  { url }: AgentServer,
  graph: Misbehaviour,
  seconds: number,
): Promise<Bystanders> {
  const isRun = graph === 'loop' || graph === 'allocate';
  const run = isRun ? await startRunOf(url, graph) : undefined;
  const [ok, runs, read] = await Promise.all([
    clients({ kind: 'ok', url, perSecond: OK_A_SECOND, seconds }),
    waiting({ kind: 'wait', url, clients: WAITING_CLIENTS, seconds }),
    graph === 'emit' ? reading({ kind: 'discard', url, seconds }) : undefined,
  ]);
  if (run !== undefined) await cancelRun(url, run.path);
  const [okMs, runMs] = [ok, runs].map(({ samples }) => percentilesOf([Float64Array.from(samples)]));
  return {
    graph,
    okP50Ms: okMs?.p50 ?? Number.NaN,
    okP99Ms: okMs?.p99 ?? Number.NaN,
    okCount: ok.count,
    runs: runs.count,
    runP99Ms: runMs?.p99 ?? Number.NaN,
    megabytesPerSecond: read === undefined ? 0 : read.count / 1e6 / read.seconds,
  };
}

// A storm of agent servers: two processes on one database, clients that create runs of all kinds, and servers and workers that are
// killed, or stopped and continued, at random. Then everything that was responded must be true.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectOnce, type Connection } from '../../../src/platform/store/database.ts';
import { createRandom } from '../../http1/mutation.ts';
import { writeDeployment } from '../../support/agent-process.ts';
import { readChanges, recordChanges } from './agent-changes.ts';
import {
  checkEnds,
  checkOrder,
  checkRuns,
  checkTakeovers,
  checkThread,
  type EndedRun,
  findTakeovers,
} from './agent-checks.ts';
import { AgentClient } from './agent-client.ts';
import { CONFIG, FILES } from './agent-deployment.ts';
import { type AgentLedger, createAgentLedger } from './agent-ledger.ts';
import { AgentLoad } from './agent-load.ts';
import { type AgentSeries, openAgentSeries } from './agent-server-process.ts';
import type { AgentStormOptions } from './agent-storm-options.ts';

export type AgentStormResult = {
  readonly errors: readonly string[];
  readonly kills: ReadonlyMap<string, number>;
  readonly runs: ReadonlyMap<string, number>;
  readonly attemptsAboveOne: number;
  readonly mostAttempts: number;
  readonly takeovers: number;
  readonly longestFreeMs: number;
  readonly longestClaimedMs: number;
  readonly startsMs: readonly number[];
  readonly counts: ReadonlyMap<string, number>;
  readonly threads: number;
};

type Storm = AgentStormOptions & {
  readonly directory: string;
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly owner: Connection;
  /** In place of the one that tests start. */
  readonly program?: string | undefined;
  onKill?(nth: number, ledger: AgentLedger): void;
};

/** Between kills. */
const PAUSE_MS = 400;
const JITTER_MS = 1_800;
/** One in so many is stopped rather than killed. */
const STOPPED = 5;
/** Longer than a lease: others have its runs when it goes on. */
const SERVER_STOP_MS = 12_000;
/** For the runs that are left after the last kill. */
const SETTLED_MS = 60_000;

export async function runAgentStorm(options: Storm): Promise<AgentStormResult> {
  const { directory, database, owner, program, seed, clients } = options;
  const config = await writeDeployment(join(directory, 'deployment'), CONFIG, FILES);
  const open = (name: string): AgentSeries =>
    openAgentSeries({ name, config, database, program, dataDirectory: join(directory, 'data') });
  await using first = open('a');
  // The first one migrates.
  await first.ready();
  await recordChanges(owner);
  await using second = open('b');
  await second.ready();
  const series = [first, second];
  const ledger = createAgentLedger();
  let isOver = false;
  const loads = Array.from({ length: clients }, (_, index) => {
    const random = createRandom(seed * 1000 + index);
    return new AgentLoad(new AgentClient(series, random), ledger, random, () => isOver).run();
  });
  const loaded = Promise.all(loads);
  loaded.catch(() => undefined);
  const kills = await Promise.race([killAtRandom(series, options, ledger), loaded.then(() => new Map())]);
  isOver = true;
  await loaded;
  const settled = await settle(owner);
  const errors = [...ledger.errors, ...settled, ...(await checkStates(series, owner, ledger))];
  for (const one of series) await one.end();
  const changes = await readChanges(owner);
  const deaths = new Map(series.flatMap((one) => [...one.deaths]));
  const [spans, stops] = [series.flatMap((one) => one.spans), series.flatMap((one) => one.stops)];
  const takeovers = findTakeovers(changes, { deaths, stops, spans });
  const ends = Map.groupBy(changes, ({ runId }) => runId);
  const attempts = [...ends.values()].map((all) => Math.max(...all.map(({ attempt }) => attempt)));
  const statuses = [...ends.values()].map((all) => {
    const ended = all.find(
      ({ kind, status }) => kind === 'DELETE' || (status !== 'pending' && status !== 'running'),
    );
    return ended?.kind === 'DELETE' ? 'removed or ended with their thread' : (ended?.status ?? 'not ended');
  });
  return {
    errors: [
      ...errors,
      ...series.flatMap((one) => one.errors),
      ...checkEnds(changes),
      ...checkOrder(changes),
      ...checkRuns(ledger.jobs, changes),
      ...checkTakeovers(takeovers),
    ],
    kills,
    runs: new Map(
      Object.entries(Object.groupBy(statuses, (one) => one)).map(([status, all = []]) => [
        status,
        all.length,
      ]),
    ),
    attemptsAboveOne: attempts.filter((one) => one > 1).length,
    mostAttempts: Math.max(0, ...attempts),
    takeovers: takeovers.length,
    longestFreeMs: Math.max(0, ...takeovers.map(({ freeMs }) => freeMs)),
    longestClaimedMs: Math.max(0, ...takeovers.map(({ claimedMs }) => claimedMs ?? 0)),
    startsMs: series.flatMap((one) => one.startsMs),
    counts: ledger.counts,
    threads: new Set(ledger.jobs.map(({ threadId }) => threadId)).size,
  };
}

async function killAtRandom(
  series: readonly AgentSeries[],
  { kills, seed, onKill }: Storm,
  ledger: AgentLedger,
): Promise<ReadonlyMap<string, number>> {
  const random = createRandom(seed);
  const killed = new Map<string, number>();
  for (let nth = 1; nth <= kills; ) {
    await pause(PAUSE_MS + random(JITTER_MS));
    const up = series.filter(({ url }) => url !== undefined);
    const victim = up[random(up.length)];
    if (victim === undefined) {
      await Promise.race(series.map((one) => one.ready()));
      continue;
    }
    const workers = victim.workers();
    const worker = workers[random(workers.length)];
    const isServer = random(2) === 0 || worker === undefined;
    const isStopped = random(STOPPED) === 0;
    if (!isServer) hit(victim, worker, isStopped ? random : undefined);
    else if (isStopped) victim.stop(SERVER_STOP_MS + random(SERVER_STOP_MS / 2));
    else victim.kill();
    const kind = `${isServer ? 'server' : 'worker'} ${isStopped ? 'stopped' : 'killed'}`;
    killed.set(kind, (killed.get(kind) ?? 0) + 1);
    onKill?.(nth, ledger);
    nth += 1;
  }
  // The last ones are started again too.
  await Promise.all(series.map((one) => one.ready()));
  return killed;
}

/** A third of the workers that are stopped never go on: their server ends them. */
function hit(victim: AgentSeries, worker: number, random: ((below: number) => number) | undefined): void {
  if (random === undefined) process.kill(worker, 'SIGKILL');
  else victim.stopWorker(worker, random(3) === 0 ? undefined : 1_000 + random(5_000));
}

/** Waits until no run is left, and says what is. */
async function settle(owner: Connection): Promise<readonly string[]> {
  const left = `select run_id, status, attempt, metadata->>'job' as job from agent_runs where status in ('pending', 'running')`;
  for (const lateMs = performance.now() + SETTLED_MS; ; await pause(250)) {
    const { rows } = await connectOnce(owner, (client) => client.query(left));
    if (rows.length === 0) break;
    if (performance.now() > lateMs) return rows.map((row) => `not ended after 60 s: ${JSON.stringify(row)}`);
  }
  const rest = `select (select count(*) from agent_threads where status = 'busy')::int as busy,
    (select count(*) from agent_run_users)::int as users`;
  const { rows } = await connectOnce(owner, (client) => client.query<{ busy: number; users: number }>(rest));
  const { busy = 0, users = 0 } = rows[0] ?? {};
  return [
    ...(busy > 0 ? [`${busy} threads are busy without a run`] : []),
    ...(users > 0 ? [`the users of ${users} runs are kept after their ends`] : []),
  ];
}

/** Of each thread: what it shows, what its last checkpoint has, and what its runs have done. */
async function checkStates(
  series: readonly AgentSeries[],
  owner: Connection,
  { jobs }: AgentLedger,
): Promise<readonly string[]> {
  const client = new AgentClient(series, createRandom(1));
  const { rows } = await connectOnce(owner, (one) =>
    one.query<EndedRun>(
      `select metadata->>'job' as job, thread_id as "threadId", status, losses from agent_runs
        where thread_id in (select thread_id from agent_threads where not is_temporary) order by position`,
    ),
  );
  const errors: string[] = [];
  for (const [threadId, runs] of Map.groupBy(rows, (row) => row.threadId)) {
    const read = async (
      path: string,
    ): Promise<{ readonly values: { readonly steps?: readonly string[] } | null }> =>
      JSON.parse((await client.ask('GET', `/threads/${threadId}${path}`, { user: 'reader' })).text);
    const [shown, stored] = [await read(''), await read('/state')].map(({ values }) => values?.steps ?? []);
    errors.push(...checkThread(threadId, { steps: stored ?? [], runs, jobs }));
    if (JSON.stringify(shown) !== JSON.stringify(stored))
      errors.push(
        `thread ${threadId} shows ${shown?.length} steps (${shown?.at(-1)}), its state has ${stored?.length} (${stored?.at(-1)})`,
      );
  }
  return errors;
}

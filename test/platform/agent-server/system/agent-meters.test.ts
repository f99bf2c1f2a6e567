// The series of runs and workers as Prometheus reads them, over a queue on PostgreSQL.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Backlog } from '../../../../src/platform/agent-server/queue/backlog.ts';
import type { Concluded } from '../../../../src/platform/agent-server/queue/conclusion.ts';
import { createAgentMeters } from '../../../../src/platform/agent-server/system/agent-meters.ts';
import { createProcessMetrics } from '../../../../src/platform/api/metrics.ts';
import { createQueueScene, type QueueScene } from '../queue/queue-scene.ts';

let scene: QueueScene;
beforeAll(async () => {
  scene = await createQueueScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const PREFIX = 'sallyport_platform_agent_';

/** The lines of these series, without their prefix. */
function linesOf(text: string): readonly string[] {
  const lines = text.split('\n').filter((line) => line.startsWith(PREFIX));
  return lines.map((line) => line.slice(PREFIX.length));
}

it('runs and workers are counted by bounded labels', async () => {
  const metrics = createProcessMetrics({ pools: () => ({}), onError: () => undefined });
  const meters = createAgentMeters(metrics);
  meters.watch({ queue: { running: 3 }, backlog: { waiting: 7, oldestSeconds: 1.5 }, places: 20 });
  for (const status of ['success', 'success', 'removed'] as const)
    meters.onAttempt({ kind: 'ended', status });
  for (const kind of ['given_back', 'lost'] as const) meters.onAttempt({ kind });
  meters.onWorkerStart();
  meters.onWorkerExit('memory');
  const text = await metrics.read();
  expect(linesOf(text).toSorted()).toEqual([
    'oldest_waiting_run_age_seconds 1.5',
    'run_attempts_unfinished_total{reason="given_back"} 1',
    'run_attempts_unfinished_total{reason="lost"} 1',
    'run_places 20',
    'runs_ended_total{status="removed"} 1',
    'runs_ended_total{status="success"} 2',
    'runs_running 3',
    'runs_waiting 7',
    'worker_exits_total{reason="memory"} 1',
    'worker_starts_total 1',
  ]);
  // As promtool checks: a counter ends with `_total`, no other does, and everything has a help text.
  for (const [, name = '', type] of text.matchAll(/^# TYPE (sallyport_platform_agent_\S+) (\S+)$/gm)) {
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
  }
});

it('the age of the oldest run is that of one that is due, and a run that ends is counted', async () => {
  const concluded = Promise.withResolvers<Concluded>();
  const { row } = await scene.create({});
  await scene.create({ body: { after_seconds: 3_600 } });
  const { db } = scene.store;
  const since = { run_after: new Date(Date.now() - 90_000) };
  await db.updateTable('agent_runs').set(since).where('run_id', '=', row.run_id).execute();
  const backlog = new Backlog(100);
  const counted = Promise.withResolvers<void>();
  const looked = (...given: Parameters<Backlog['count']>): void => {
    backlog.count(...given);
    counted.resolve();
  };
  const waits = { limit: 100, add: () => backlog.add(), count: looked };
  scene.addProcess({ places: 0, backlog: waits });
  await counted.promise;
  expect([backlog.waiting, Math.floor(backlog.oldestSeconds / 10)]).toEqual([2, 9]);
  await scene.closeProcesses();
  const process = scene.addProcess({ onAttempt: concluded.resolve });
  (await process.started(row.run_id)).end();
  expect(await concluded.promise).toMatchObject({ kind: 'ended', status: 'success' });
});

// What idle streams cost: clients that have joined runs in which nothing happens. Measured as the growth of the server's process.
import { setTimeout as delay } from 'node:timers/promises';
import { residentMb } from '../support/children.ts';
import { type BackgroundRun, cancelRun, startRunOf } from './background-runs.ts';
import type { RunClients } from './run-clients.ts';
import type { AgentServer } from './servers.ts';

export const STREAMS = 500;
/** Fewer than the runs that either server executes at once. */
const RUNS = 5;
const SETTLE_MS = 2_000;

/** In megabytes. */
export async function measureIdleStreams(clients: RunClients, { url, child }: AgentServer): Promise<number> {
  const runs: BackgroundRun[] = [];
  for (let n = 0; n < RUNS; n += 1) runs.push(await startRunOf(url, 'idle'));
  await delay(SETTLE_MS);
  const before = residentMb([child.pid]).now;
  const paths = Array.from({ length: STREAMS }, (_, n) => `${runs[n % RUNS]?.path}/stream`);
  const { count } = await clients({ kind: 'join', url, paths });
  if (count !== STREAMS) throw new Error(`${count} of ${STREAMS} streams are open`);
  await delay(SETTLE_MS);
  const after = residentMb([child.pid]).now;
  await clients({ kind: 'leave', url });
  for (const { path } of runs) await cancelRun(url, path);
  return after - before;
}

// What readers of one organization cost another: 40 clients read audit logs as fast as they can, one client of another
// organization reads a listener. In turns each alone, and both at once.
import { setTimeout as delay } from 'node:timers/promises';
import type { Children } from '../support/children.ts';
import { spreadOf } from '../support/percentiles.ts';
import type { Completed } from './load-client.ts';
import { createListeners, type LoadClient, startLoadClient } from './measure.ts';
import { addOrganization, type Installation } from './servers.ts';

const READERS = 40;
const DURATION_MS = 1500;
/** The readers have filled their share by then. */
const LEAD_MS = 250;

type Round = {
  readonly alone: Completed;
  readonly beside: Completed;
  readonly readers: readonly Completed[];
};

/** Lines for the report. */
export async function measureNeighbours(
  children: Children,
  installation: Installation,
  { port, rounds }: { readonly port: number; readonly rounds: number },
): Promise<readonly string[]> {
  const other = addOrganization(installation);
  const listeners = await createListeners(other, port);
  const bystander = startLoadClient(children, other, listeners, 'bystander');
  const readers = startLoadClient(children, installation, [], 'readers');
  const read: LoadClient = (load) =>
    readers({ ...load, clients: READERS, path: '/api/v1/audit-logs?limit=100', wanted: '"items":[' });
  await bystander({ port, method: 'GET', clients: 1, durationMs: DURATION_MS });
  await read({ port, method: 'GET', durationMs: DURATION_MS });
  const all: Round[] = [];
  for (let round = 0; round < rounds; round += 1) all.push(await measureOnce(bystander, read, port));
  return describe(all);
}

async function measureOnce(bystander: LoadClient, read: LoadClient, port: number): Promise<Round> {
  const ask = { port, method: 'GET', clients: 1 } as const;
  const alone = await bystander({ ...ask, durationMs: DURATION_MS });
  const readersAlone = await read({ port, method: 'GET', durationMs: DURATION_MS });
  const reading = read({ port, method: 'GET', durationMs: DURATION_MS });
  await delay(LEAD_MS);
  const beside = await bystander({ ...ask, durationMs: DURATION_MS - 2 * LEAD_MS });
  return { alone, beside, readers: [readersAlone, await reading] };
}

function describe(rounds: readonly Round[]): readonly string[] {
  const median = (of: (round: Round) => number): number => spreadOf(rounds.map(of)).median;
  const [alone, beside] = [median((one) => one.alone.p50Ms), median((one) => one.beside.p50Ms)];
  const rate = (at: number) => (one: Round) =>
    (one.readers[at]?.count ?? 0) / (one.readers[at]?.seconds ?? 1);
  return [
    `a client of another organization: p50 ${alone.toFixed(2)} ms alone, ${beside.toFixed(2)} ms beside ${READERS} readers of audit logs (${(beside / alone).toFixed(1)} times)`,
    `the readers: ${median(rate(0)).toFixed(0)} requests/s alone, ${median(rate(1)).toFixed(0)} beside that client; p50 ${median((one) => one.readers[0]?.p50Ms ?? 0).toFixed(0)} ms`,
  ];
}

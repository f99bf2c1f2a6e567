// One organization reads its audit log with many clients, another one reads a listener with one. In turns each alone, and both
// at once; by a read that the process works for, and by one that the database works for.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { connectOnce } from '../../src/platform/store/database.ts';
import type { Children } from '../support/children.ts';
import { spreadOf } from '../support/percentiles.ts';
import type { Completed } from './load-client.ts';
import { createListeners, type LoadClient, startLoadClient } from './measure.ts';
import type { PlatformScene } from './scene.ts';
import { addOrganization, type Installation, ownerOf } from './servers.ts';

export type NeighbourOptions = {
  readonly readers: number;
  /** In the log that is read. */
  readonly events: number;
  readonly rounds: number;
};

export type NeighbourCase = {
  readonly lines: readonly string[];
  /** The p50 of the other client beside the readers, in times of its p50 alone. */
  readonly ratio: number;
};

/** Of `ratio`: the platform promises no more. */
export const MAX_RATIO = 2;

const DURATION_MS = 1500;
/** The readers have filled their share by then. */
const LEAD_MS = 250;

type Reads = { readonly name: string; readonly path: string; readonly wanted: string };

const CASES: readonly Reads[] = [
  {
    name: 'the latest events: many to write out',
    path: '/api/v1/audit-logs?limit=100',
    wanted: '"items":[',
  },
  {
    name: 'a rare operation: many to look through, few found',
    path: '/api/v1/audit-logs?operations=login&limit=100&start_time=2025-12-01T00:00:00Z',
    wanted: '"items":[',
  },
];

type Round = {
  readonly alone: Completed;
  readonly beside: Completed;
  readonly readersAlone: Completed;
  readonly readersBeside: Completed;
};

export async function measureNeighbours(
  children: Children,
  { installation, platform: { port } }: PlatformScene,
  { readers: clients, events, rounds }: NeighbourOptions,
): Promise<readonly NeighbourCase[]> {
  await addEvents(installation, events);
  const other = addOrganization(installation);
  const bystander = startLoadClient(children, other, await createListeners(other, port), 'bystander');
  const readers = startLoadClient(children, installation, [], 'readers');
  const cases: NeighbourCase[] = [];
  for (const reads of CASES) {
    const read: LoadClient = (load) => readers({ ...load, ...reads, clients, mayBeRejected: true });
    await bystander({ port, method: 'GET', clients: 1, durationMs: DURATION_MS });
    await read({ port, method: 'GET', durationMs: DURATION_MS });
    const all: Round[] = [];
    for (let round = 0; round < rounds; round += 1) all.push(await measureOnce(bystander, read, port));
    cases.push(describe(reads.name, clients, all));
  }
  return cases;
}

/** To the log of the first organization, by the function that links events: listeners that a service key created. */
async function addEvents(installation: Installation, count: number): Promise<void> {
  const record = JSON.stringify({
    operation_succeeded: true,
    api_key_id: randomUUID(),
    user_id: null,
    enrichments: {
      ...{ request_method: 'POST', request_path: '/v2/listeners', client_host: '127.0.0.1' },
      ...{ client_port: 40_000, x_forwarded_for: null, response_status_code: 201 },
      ...{ resource_ids: [randomUUID()], request_id: randomUUID() },
    },
  });
  await connectOnce(await ownerOf(installation), (client) =>
    client.query(
      `select count(public.audit_append(o.id, 'create_listener', null, $2))
       from (select id from organizations limit 1) as o, generate_series(1, $1::int)`,
      [count, record],
    ),
  );
}

async function measureOnce(bystander: LoadClient, read: LoadClient, port: number): Promise<Round> {
  const ask = { port, method: 'GET', clients: 1 } as const;
  const alone = await bystander({ ...ask, durationMs: DURATION_MS });
  const readersAlone = await read({ port, method: 'GET', durationMs: DURATION_MS });
  const reading = read({ port, method: 'GET', durationMs: DURATION_MS });
  await delay(LEAD_MS);
  const beside = await bystander({ ...ask, durationMs: DURATION_MS - 2 * LEAD_MS });
  return { alone, beside, readersAlone, readersBeside: await reading };
}

function describe(name: string, clients: number, rounds: readonly Round[]): NeighbourCase {
  const median = (of: (round: Round) => number): number => spreadOf(rounds.map(of)).median;
  const [alone, beside] = [median((one) => one.alone.p50Ms), median((one) => one.beside.p50Ms)];
  const ratio = beside / alone;
  const row = (title: string, of: (round: Round) => Completed): string =>
    [
      `  ${title.padEnd(44)}`,
      `p50 ${median((one) => of(one).p50Ms)
        .toFixed(2)
        .padStart(8)} ms`,
      `${median((one) => of(one).count / of(one).seconds)
        .toFixed(0)
        .padStart(6)} responses/s`,
      `${median((one) => of(one).rejected)
        .toFixed(0)
        .padStart(4)} with 429`,
    ].join('  ');
  return {
    ratio,
    lines: [
      name,
      row('a client of another organization, alone', (one) => one.alone),
      row(`beside ${clients} readers`, (one) => one.beside),
      row(`${clients} readers alone`, (one) => one.readersAlone),
      row('beside that client', (one) => one.readersBeside),
      `  p50 beside / alone: ${ratio.toFixed(2)} (at most ${MAX_RATIO})`,
    ],
  };
}

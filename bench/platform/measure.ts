// Measures both servers in turns: requests of clients that each wait for their response, the CPU of the server and that of
// PostgreSQL in between, and what each request asks of the database.
import { join } from 'node:path';
import { type Children, cpuMs, statFields, treeOf } from '../support/children.ts';
import { spreadOf } from '../support/percentiles.ts';
import { LOAD_CORE } from '../support/scene.ts';
import { type Counts, type DatabaseRelay, openDatabaseRelay } from './database-relay.ts';
import type { Completed, Load } from './load-client.ts';
import {
  type ApiServer,
  type Installation,
  databaseOf,
  startBareServer,
  startCountedPlatform,
} from './servers.ts';

export const CLIENTS = 16;
const LISTENERS = 64;
const COUNTED_REQUESTS = 100;

export type Side = 'sallyport' | 'fastify';
export type Method = 'GET' | 'POST';

export const sides: readonly Side[] = ['sallyport', 'fastify'];
export const methods: readonly Method[] = ['GET', 'POST'];

export type Effort = {
  readonly rounds: number;
  /** Of each server and method, before anything is measured. */
  readonly warmUpRequests: number;
  readonly durationMs: number;
};

/** One round of one side: of each request the CPU of the server and of PostgreSQL, in microseconds. */
export type Figures = {
  readonly cpu_us: number;
  readonly postgresql_us: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly per_second: number;
};

/** The rounds of each side, in order. */
export type BySide<T> = Readonly<Record<Method, Readonly<Record<Side, T>>>>;

export type LoadClient = (load: Pick<Load, 'port' | 'method'> & Partial<Load>) => Promise<Completed>;

export function startLoadClient(
  children: Children,
  { key, workspaceId }: Installation,
  listeners: readonly string[],
  name = 'clients',
): LoadClient {
  const program = join(import.meta.dirname, 'load-client.ts');
  const child = children.start(name, [process.execPath, program], { core: LOAD_CORE, output: 'ipc' });
  const fields = [
    'Host: platform.test',
    'User-Agent: bench',
    'Accept: application/json',
    ...fieldsOf({ key, workspaceId }).map(([name, value]) => `${name}: ${value}`),
  ];
  return async (load) => {
    const completed = (await child.ask({ fields, listeners, clients: CLIENTS, ...load })) as
      | Completed
      | { readonly error: string };
    if ('error' in completed) throw new Error(completed.error);
    return completed;
  };
}

function fieldsOf({ key, workspaceId }: Pick<Installation, 'key' | 'workspaceId'>) {
  return [
    ['X-Api-Key', key],
    ['X-Tenant-Id', workspaceId],
  ] as const;
}

/** The listeners that GET reads. */
export async function createListeners(installation: Installation, port: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let number = 0; number < LISTENERS; number += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/v2/listeners`, {
      method: 'POST',
      headers: { ...Object.fromEntries(fieldsOf(installation)), 'Content-Type': 'application/json' },
      body: JSON.stringify({ compute_type: 'k8s', compute_id: `read-${number}`, compute_config: {} }),
    });
    if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
    ids.push(((await response.json()) as { readonly id: string }).id);
  }
  return ids;
}

/** What a request asks of the database, by servers of their own whose connections go through a relay. */
export async function countStatements(
  children: Children,
  installation: Installation,
  client: LoadClient,
): Promise<BySide<Counts>> {
  const { host = '' } = await databaseOf(installation);
  using relay = await openDatabaseRelay(host, join(installation.directory, 'relay'));
  const counted: Partial<Record<Side, Record<Method, Counts>>> = {};
  for (const [side, start] of [
    ['sallyport', startCountedPlatform],
    ['fastify', startBareServer],
  ] as const) {
    const { child, port } = await start(children, installation, relay.host);
    const count = (method: Method): Promise<Counts> =>
      countRequests(relay, () => client({ method, port, clients: 1, requests: 1 }));
    counted[side] = { GET: await count('GET'), POST: await count('POST') };
    await child.stop();
  }
  return forEachSide(async (method, side) => counted[side]![method]);
}

/** Of most requests: some have the work of others beside them, such as that of the jobs, or are the first on a connection. */
async function countRequests(relay: DatabaseRelay, send: () => Promise<unknown>): Promise<Counts> {
  const all: Counts[] = [];
  for (let request = 0; request < COUNTED_REQUESTS; request += 1) {
    const before = relay.counts();
    await send();
    const { statements, roundTrips } = relay.counts();
    all.push({
      statements: statements - before.statements,
      roundTrips: roundTrips - before.roundTrips,
    });
  }
  return {
    statements: spreadOf(all.map(({ statements }) => statements)).median,
    roundTrips: spreadOf(all.map(({ roundTrips }) => roundTrips)).median,
  };
}

export type Measured = Effort & {
  readonly servers: Readonly<Record<Side, ApiServer>>;
  readonly client: LoadClient;
  readonly databasePid: number;
  onRound(): void;
};

export async function measure(measured: Measured): Promise<BySide<readonly Figures[]>> {
  const { rounds, warmUpRequests, durationMs, client, servers, onRound } = measured;
  // As many for each: in the same time, the slower server would have had fewer, and V8 would still compile it while it is measured.
  const requests = Math.ceil(warmUpRequests / CLIENTS);
  await forEachSide((method, side) => client({ method, port: servers[side].port, requests }));
  const figures = await forEachSide(async () => [] as Figures[]);
  for (let round = 0; round < rounds; round += 1) {
    for (const method of methods)
      for (const side of round % 2 === 0 ? sides : sides.toReversed())
        figures[method][side].push(await measureOnce(measured, method, side, durationMs));
    onRound();
  }
  return figures;
}

async function measureOnce(
  { servers, client, databasePid }: Measured,
  method: Method,
  side: Side,
  durationMs: number,
): Promise<Figures> {
  const { port, child } = servers[side];
  const before = { own: cpuMs([child.pid]), database: databaseCpu(databasePid) };
  const { count, seconds, p50Ms, p99Ms } = await client({ method, port, durationMs });
  const own = cpuMs([child.pid]) - before.own;
  const database = [...databaseCpu(databasePid)].map(([pid, ms]) => ms - (before.database.get(pid) ?? 0));
  const databaseMs = database.reduce((sum, ms) => sum + ms, 0);
  return {
    cpu_us: (own / count) * 1000,
    postgresql_us: (databaseMs / count) * 1000,
    p50_ms: p50Ms,
    p99_ms: p99Ms,
    per_second: count / seconds,
  };
}

/** Of each process of PostgreSQL, in milliseconds. One that ends meanwhile, such as an autovacuum worker, is left out. */
function databaseCpu(databasePid: number): ReadonlyMap<number, number> {
  const alive = treeOf(databasePid).filter((pid) => statFields(pid) !== undefined);
  return new Map(alive.map((pid) => [pid, cpuMs([pid])]));
}

async function forEachSide<T>(find: (method: Method, side: Side) => Promise<T>): Promise<BySide<T>> {
  const ofMethod = async (method: Method) => ({
    sallyport: await find(method, 'sallyport'),
    fastify: await find(method, 'fastify'),
  });
  return { GET: await ofMethod('GET'), POST: await ofMethod('POST') };
}

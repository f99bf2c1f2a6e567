// The history of a thread, in a database that has nothing else, and in one with a million checkpoints of 100,000 threads. Those are
// copies of the threads that were read before, so that both are read alike.
import { type Client, connectOnce } from '../../src/platform/store/database.ts';
import { ownerOf } from '../platform/servers.ts';
import { percentilesOf } from '../support/percentiles.ts';
import { CLIENTS } from './rounds.ts';
import type { RunClients } from './run-clients.ts';
import { createConnections, createThread, postJson } from './run-requests.ts';
import type { AgentServer } from './servers.ts';

const TEMPLATES = 20;
const RUNS_OF_TEMPLATE = 2;
const THREADS_A_STATEMENT = 5_000;

export type HistoryTimes = { readonly p50Ms: number; readonly p99Ms: number; readonly count: number };

export type History = {
  readonly empty: HistoryTimes;
  readonly full: HistoryTimes;
  readonly threads: number;
  readonly checkpoints: number;
};

export async function measureHistory(
  clients: RunClients,
  server: AgentServer,
  { threads: count, seconds }: { readonly threads: number; readonly seconds: number },
): Promise<History> {
  const { url } = server;
  const templates = await createTemplates(url);
  const measure = async (threads: readonly string[]): Promise<HistoryTimes> => {
    await clients({ kind: 'history', url, threads, clients: CLIENTS, seconds: seconds / 4 });
    const { samples } = await clients({ kind: 'history', url, threads, clients: CLIENTS, seconds });
    const { p50, p99 } = percentilesOf([Float64Array.from(samples)]);
    return { p50Ms: p50, p99Ms: p99, count: samples.length };
  };
  const empty = await measure(templates);
  const { threads, checkpoints } = await connectOnce(await ownerOf(server), async (client) => {
    await fill(client, templates, count);
    return readFilled(client);
  });
  return { empty, full: await measure(threads), threads: threads.length, checkpoints };
}

async function createTemplates(url: string): Promise<readonly string[]> {
  const connections = createConnections(url);
  const threads: string[] = [];
  for (let n = 0; n < TEMPLATES; n += 1) {
    const threadId = await createThread(connections);
    const body = { assistant_id: 'steps', input: { topic: 'harbours' } };
    for (let run = 0; run < RUNS_OF_TEMPLATE; run += 1)
      await postJson(connections, `/threads/${threadId}/runs/wait`, body);
    threads.push(threadId);
  }
  connections.close();
  return threads;
}

/** The columns that are copied beside the id of the thread. */
const COPIED: Readonly<Record<string, readonly string[]>> = {
  agent_threads: ['status', 'metadata', 'config', 'values', 'searched_values', 'interrupts'],
  agent_checkpoints: [
    ...['checkpoint_ns', 'checkpoint_id', 'parent_checkpoint_id', 'run_id', 'type', 'checkpoint'],
    ...['metadata_type', 'metadata', 'searched_metadata', 'versions'],
  ],
  agent_checkpoint_values: ['checkpoint_ns', 'channel', 'version', 'type', 'value'],
  agent_checkpoint_writes: [
    'checkpoint_ns',
    'checkpoint_id',
    'task_id',
    'idx',
    'run_id',
    'channel',
    'type',
    'value',
  ],
};

async function fill(client: Client, templates: readonly string[], count: number): Promise<void> {
  for (let from = 0; from < count; from += THREADS_A_STATEMENT) {
    const to = Math.min(from + THREADS_A_STATEMENT, count) - 1;
    for (const [table, columns] of Object.entries(COPIED))
      await client.query(
        `insert into ${table} (thread_id, ${columns.join(', ')})
         select overlay(overlay(md5('bench' || n) placing '4' from 13) placing '8' from 17)::uuid, ${columns.map((name) => `one.${name}`).join(', ')}
         from generate_series($1::int, $2::int) as n
           join ${table} as one on one.thread_id = ($3::uuid[])[n % ${templates.length} + 1]`,
        [from, to, templates],
      );
  }
  await client.query('analyze');
}

async function readFilled(client: Client) {
  const threads = await client.query<{ readonly thread_id: string }>(
    `select thread_id from agent_threads order by md5(thread_id::text)`,
  );
  const checkpoints = await client.query<{ readonly count: string }>(
    'select count(*) from agent_checkpoints',
  );
  return {
    threads: threads.rows.map(({ thread_id: id }) => id),
    checkpoints: Number(checkpoints.rows[0]?.count),
  };
}

// The clients of the agent benchmark, a process of their own. Each client of a load sends its next request when it has read and
// checked the response to the one before; requests to /ok are sent at a constant rate instead, whatever happened to those before.
import { setTimeout as delay } from 'node:timers/promises';
import { countEvents } from './event-count.ts';
import {
  type Connections,
  createConnections,
  createThread,
  postJson,
  readBody,
  startRun,
} from './run-requests.ts';

/** What a client measures: milliseconds of each sample, what it counted, and how long all of it took. */
export type Measured = {
  readonly samples: readonly number[];
  readonly count: number;
  readonly seconds: number;
};

type Timed = { readonly clients: number; readonly seconds: number };

export type Task = { readonly url: string } & (
  | ({ readonly kind: 'first-event' | 'wait' } & Timed)
  | ({ readonly kind: 'history'; readonly threads: readonly string[] } & Timed)
  | { readonly kind: 'events'; readonly clients: number; readonly events: number }
  | { readonly kind: 'join'; readonly paths: readonly string[] }
  | { readonly kind: 'ok'; readonly perSecond: number; readonly seconds: number }
  | { readonly kind: 'discard'; readonly seconds: number }
  | { readonly kind: 'leave' }
);

const CHECKPOINTS = 10;
/** How many runs a client starts on one thread. */
const RUNS_OF_THREAD = 8;
const STEPS = 3;

const joined: Connections[] = [];

process.on('message', (task: Task) => {
  measure(task).then(
    (measured) => process.send?.(measured),
    (error: Error) => process.send?.({ error: `${task.kind}: ${error.message}` }),
  );
});
process.on('disconnect', () => process.exit());

async function measure(task: Task): Promise<Measured> {
  const startMs = performance.now();
  const samples: number[] = [];
  const count = await work(task, samples);
  return { samples, count, seconds: (performance.now() - startMs) / 1000 };
}

/** Returns how much was done: runs, events, streams, bytes. */
async function work(task: Task, samples: number[]): Promise<number> {
  switch (task.kind) {
    case 'first-event':
    case 'wait':
      return repeat(task, samples, task.kind === 'wait' ? waitForRun : timeFirstEvent);
    case 'history':
      return repeat(task, samples, (connections) => readHistory(connections, task.threads));
    case 'events':
      return readEvents(task, samples);
    case 'join':
      return joinAll(task);
    case 'ok':
      return askAtRate(task, samples);
    case 'discard':
      return discardEvents(task);
    case 'leave':
      for (const connections of joined.splice(0)) connections.close();
      return 0;
  }
}

type Client = { readonly connections: Connections; threadId: string; runs: number };
type Once = (connections: Connections, threadId: string) => Promise<number>;

/** Returns how often `once` was done, which returns the milliseconds that count. */
async function repeat({ url, clients, seconds, kind }: Timed & Task, samples: number[], once: Once) {
  const endMs = performance.now() + seconds * 1000;
  const connections = createConnections(url);
  const run = async (client: Client): Promise<void> => {
    while (performance.now() < endMs) {
      if (kind !== 'history' && client.runs % RUNS_OF_THREAD === 0)
        client.threadId = await createThread(connections);
      client.runs += 1;
      samples.push(await once(connections, client.threadId));
    }
  };
  await Promise.all(Array.from({ length: clients }, () => run({ connections, threadId: '', runs: 0 })));
  connections.close();
  return samples.length;
}

async function waitForRun(connections: Connections, threadId: string): Promise<number> {
  const sentMs = performance.now();
  const body = { assistant_id: 'steps', input: { topic: 'harbours' }, multitask_strategy: 'enqueue' };
  const text = await postJson(connections, `/threads/${threadId}/runs/wait`, body);
  if (!text.includes('checked harbours')) throw new Error(`the run ended with ${text.slice(0, 300)}`);
  return performance.now() - sentMs;
}

/** Of the first node; the stream is read to its end. */
async function timeFirstEvent(connections: Connections, threadId: string): Promise<number> {
  const sentMs = performance.now();
  const response = await startRun(connections, threadId, {
    assistant: 'steps',
    topic: 'harbours',
    mode: 'updates',
  });
  let firstMs = Number.NaN;
  const events = await countEvents(response, 'updates', (count) => {
    if (count > 0 && Number.isNaN(firstMs)) firstMs = performance.now() - sentMs;
  });
  if (events !== STEPS) throw new Error(`expected ${STEPS} events, got ${events}`);
  return firstMs;
}

/** Of streams, one of each client at once: the samples are the times from each request to the end of its stream. */
async function readEvents(
  { url, clients, events }: Task & { readonly events: number; readonly clients: number },
  samples: number[],
) {
  const connections = createConnections(url);
  const counts = await Promise.all(
    Array.from({ length: clients }, async () => {
      const threadId = await createThread(connections);
      const sentMs = performance.now();
      const wanted = { assistant: 'events', topic: String(events), mode: 'custom' };
      const count = await countEvents(await startRun(connections, threadId, wanted), 'custom');
      if (count !== events) throw new Error(`expected ${events} events, got ${count}`);
      samples.push(performance.now() - sentMs);
      return count;
    }),
  );
  connections.close();
  return counts.reduce((sum, count) => sum + count, 0);
}

async function readHistory(connections: Connections, threads: readonly string[]): Promise<number> {
  const threadId = threads[Math.floor(Math.random() * threads.length)];
  const sentMs = performance.now();
  const text = await postJson(connections, `/threads/${threadId}/history`, { limit: CHECKPOINTS });
  const ms = performance.now() - sentMs;
  const states: readonly unknown[] = JSON.parse(text);
  if (states.length !== CHECKPOINTS) throw new Error(`a history has ${states.length} states`);
  return ms;
}

/** Each on a connection of its own, which stays open. */
async function joinAll({ url, paths }: Task & { readonly paths: readonly string[] }): Promise<number> {
  for (const path of paths) {
    const connections = createConnections(url);
    joined.push(connections);
    const response = await connections.request('GET', path);
    response.resume();
  }
  return joined.length;
}

/** Latencies count from when a request was due: one that waits for a slow one before it is slow too. */
async function askAtRate(
  { url, perSecond, seconds }: Task & { readonly perSecond: number; readonly seconds: number },
  samples: number[],
) {
  const connections = createConnections(url);
  const all: Promise<void>[] = [];
  const startMs = performance.now();
  for (let n = 0; n < perSecond * seconds; n += 1) {
    const dueMs = startMs + (n * 1000) / perSecond;
    await delay(Math.max(0, dueMs - performance.now()));
    const ask = async (): Promise<void> => {
      await readBody(await connections.request('GET', '/ok'));
      samples.push(performance.now() - dueMs);
    };
    all.push(ask());
  }
  await Promise.all(all);
  connections.close();
  return samples.length;
}

/** Reads events of a run for some time without looking at them; returns how many bytes. */
async function discardEvents({ url, seconds }: Task & { readonly seconds: number }): Promise<number> {
  const connections = createConnections(url);
  const endMs = performance.now() + seconds * 1000;
  const threadId = await createThread(connections);
  const wanted = { assistant: 'emit', topic: 'harbours', mode: 'custom', onDisconnect: 'cancel' } as const;
  const response = await startRun(connections, threadId, wanted);
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (performance.now() > endMs) break;
  }
  connections.close();
  return bytes;
}

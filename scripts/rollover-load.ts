// What clients of a deployment do while it is replaced: requests at a fixed rate, each sent once, and streams that stay open.
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { performance } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

export type LoadTarget = { readonly url: string; readonly key: string };

export type LoadResult = {
  readonly requests: number;
  readonly latenciesMs: readonly number[];
  /** What each request that failed was, and why. */
  readonly failures: readonly string[];
};

type Sent = { readonly method: string; readonly path: string; readonly body?: unknown };

/** Requests that read, search and write, as they come in turn. */
const MIX: readonly Sent[] = [
  ...Array.from({ length: 14 }, () => ({ method: 'GET', path: '/ok' })),
  { method: 'GET', path: '/info' },
  { method: 'POST', path: '/assistants/search', body: { limit: 1 } },
  { method: 'POST', path: '/threads', body: {} },
  { method: 'POST', path: '/threads/search', body: { limit: 1 } },
  { method: 'GET', path: '/ok?check_db=1' },
  { method: 'POST', path: '/assistants/count', body: {} },
];
const TIMEOUT_MS = 60_000;

/** A client that never retries: at `rate` a second until `signal`, however long responses take. */
export async function sendRequests(
  target: LoadTarget,
  rate: number,
  signal: AbortSignal,
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const latenciesMs: number[] = [];
  const failures: string[] = [];
  const running = new Set<Promise<void>>();
  const began = performance.now();
  let count = 0;
  const send = async (what: Sent): Promise<void> => {
    const at = performance.now();
    try {
      const response = await open(target, what, agent);
      const body = await text(response);
      if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${body.slice(0, 200)}`);
      latenciesMs.push(performance.now() - at);
    } catch (error) {
      failures.push(`${new Date().toISOString()} ${what.method} ${what.path}: ${String(error)}`);
    }
  };
  while (!signal.aborted) {
    const due = Math.floor(((performance.now() - began) / 1000) * rate);
    for (; count < due; count += 1) {
      const one = send(MIX[count % MIX.length] ?? MIX[0]!).finally(() => running.delete(one));
      running.add(one);
    }
    await delay(5);
  }
  await Promise.all(running);
  agent.destroy();
  return { requests: count, latenciesMs, failures };
}

export type StreamResult = { readonly whole: number; readonly failures: readonly string[] };

/** Keeps `count` streams open until `signal`; one that has ended is followed by another. */
export async function keepStreams(
  target: LoadTarget,
  count: number,
  ticks: number,
  signal: AbortSignal,
): Promise<StreamResult> {
  const agent = new Agent({ keepAlive: false });
  const failures: string[] = [];
  let whole = 0;
  const keep = async (nth: number): Promise<void> => {
    // Not all of them end at once.
    await delay((nth * 10_000) / count);
    while (!signal.aborted) {
      try {
        await readStream(target, ticks, agent);
        whole += 1;
      } catch (error) {
        failures.push(`${new Date().toISOString()} stream: ${String(error)}`);
        await delay(1_000);
      }
    }
  };
  await Promise.all(Array.from({ length: count }, (_, nth) => keep(nth)));
  return { whole, failures };
}

/** Throws unless every event came, in order, up to the last one. */
async function readStream(target: LoadTarget, ticks: number, agent: Agent): Promise<void> {
  const body = {
    ...{ assistant_id: 'ticker', input: { ticks, pauseMs: 500 }, stream_mode: ['custom', 'values'] },
  };
  const response = await open(target, { method: 'POST', path: '/runs/stream', body }, agent);
  const all = await text(response);
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${all.slice(0, 200)}`);
  const frames = all.split('\n\n').filter((frame) => /^data: /m.test(frame));
  const seen = frames.flatMap((frame) => /"tick":(\d+)/.exec(frame)?.[1] ?? []).map(Number);
  if (seen.length !== ticks || seen.some((tick, at) => tick !== at))
    throw new Error(`${seen.length} of ${ticks} events came: ${seen.join(' ')}`);
  if (!/"version":\d+/.test(frames.at(-1) ?? '')) throw new Error('the last event is missing');
}

async function open(
  target: LoadTarget,
  { method, path, body }: Sent,
  agent: Agent,
): Promise<IncomingMessage> {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    'X-Api-Key': target.key,
    ...(content === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(content) }),
  };
  const sent = request(`${target.url}${path}`, { method, headers, agent, timeout: TIMEOUT_MS });
  sent.on('timeout', () => sent.destroy(new Error('no response in time')));
  sent.end(content);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

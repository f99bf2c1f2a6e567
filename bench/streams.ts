// `npm run bench -- streams [--streams N] [--seconds N]`: how long an event of a streamed route takes from its producer to its
// client over a socket, beside N idle streams, and what an idle stream costs. Exits with 1 where the median is above 5 ms.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ServerEvent } from '../src/platform/api/stream/event-stream.ts';
import { eventsRoute, get, openStreams } from '../test/platform/api/stream/stream-scene.ts';
import { percentilesOf } from './support/percentiles.ts';

const MAX_MEDIAN_MS = 5;
const EVENTS_A_SECOND = 100;

const { values: given } = parseArgs({
  options: { streams: { type: 'string', default: '500' }, seconds: { type: 'string', default: '5' } },
});
const count = Number(given.streams);
const events = Number(given.seconds) * EVENTS_A_SECOND;

/** The first stream gets the events, each with the time at which it was produced; the others wait. */
async function* produce({
  signal,
  lastEventId,
}: {
  readonly signal: AbortSignal;
  readonly lastEventId: string | undefined;
}): AsyncGenerator<ServerEvent> {
  if (lastEventId === 'measured')
    for (let at = 0; at < events; at += 1) {
      await delay(1000 / EVENTS_A_SECOND);
      yield { data: performance.now() };
    }
  else await once(signal, 'abort');
}

async function open(port: number, ...fields: readonly string[]): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.write(get('/events', ...fields));
  await once(socket, 'readable');
  return socket;
}

async function measure(port: number): Promise<Float64Array> {
  const socket = await open(port, 'Last-Event-ID: measured');
  const latencies: number[] = [];
  for await (const piece of socket as AsyncIterable<Buffer>) {
    const now = performance.now();
    for (const [, sent] of String(piece).matchAll(/data: ([\d.]+)\n/g)) latencies.push(now - Number(sent));
    if (latencies.length === events) break;
  }
  return Float64Array.from(latencies);
}

await using scene = await openStreams([eventsRoute(produce)], {
  ...{ streams: count + 1, connections: count + 10, connectionsPerAddress: count + 10 },
});
const before = process.memoryUsage().rss;
const idle = await Promise.all(Array.from({ length: count }, () => open(scene.port)));
const after = process.memoryUsage().rss;
const { p50, p99, max } = percentilesOf([await measure(scene.port)]);
for (const socket of idle) socket.destroy();
console.log(
  `${events} events beside ${count} idle streams: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, max ${max.toFixed(2)} ms`,
);
console.log(`${count} idle streams and their clients: ${((after - before) / 1e6).toFixed(1)} MB`);
process.exitCode = p50 > MAX_MEDIAN_MS ? 1 : 0;

// An origin that is far away: a TCP relay in a process of its own that delays every byte by half of the round-trip time, and
// the first ones by a whole one more, the time of the TCP handshake. (The kernel of the machine may have no netem.) It reports
// how late its timers were. Started and controlled by messages: the options, then a question for the delays.
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { startTicker } from './ticker.ts';

export type DistanceCommand = { readonly originPort: number; readonly roundTripMs: number } | 'lateness';
export type DistanceResponse = { readonly port: number } | { readonly lateMs: Float64Array };

type Due = { readonly atMs: number; readonly run: () => void };

const TICK_MS = 0.2;
/** In order of their time: every delay of one relay is the same, except those of new connections. */
const queue: Due[] = [];
let lateness: number[] = [];

function at(atMs: number, run: () => void): void {
  let index = queue.length;
  while (index > 0 && (queue[index - 1]?.atMs ?? 0) > atMs) index -= 1;
  queue.splice(index, 0, { atMs, run });
}

function runDue(): void {
  const nowMs = performance.now();
  for (let next = queue[0]; next !== undefined && next.atMs <= nowMs; next = queue[0]) {
    queue.shift();
    lateness.push(nowMs - next.atMs);
    next.run();
  }
}

/** Bytes of one direction arrive in order, each after the delay. */
function forward(from: Socket, to: Socket, delayMs: number, notBeforeMs: number): void {
  const arrive = (run: () => void): void => at(Math.max(performance.now(), notBeforeMs) + delayMs, run);
  from.on('data', (chunk) => arrive(() => void (to.writable && to.write(chunk))));
  from.on('end', () => arrive(() => void to.end()));
  from.on('error', () => to.destroy());
  from.on('close', () => arrive(() => to.destroy()));
}

async function start(originPort: number, roundTripMs: number): Promise<number> {
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const origin = connect({ port: originPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    // The kernel has accepted at once; over this distance the client would have waited for one round trip.
    const connectedMs = performance.now() + roundTripMs;
    forward(client, origin, roundTripMs / 2, connectedMs);
    forward(origin, client, roundTripMs / 2, connectedMs);
  });
  if (roundTripMs > 0) await startTicker(TICK_MS, runDue);
  else await startTicker(TICK_MS * 5, runDue);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

process.on('message', async (command: DistanceCommand) => {
  if (command === 'lateness') {
    process.send?.({ lateMs: Float64Array.from(lateness) });
    lateness = [];
  } else process.send?.({ port: await start(command.originPort, command.roundTripMs) });
});
process.on('disconnect', () => process.exit());

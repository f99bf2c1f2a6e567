// A storm: clients and hosts that leave by FIN or RST at any byte and at any moment, reset, say GOAWAY, send garbage. What the
// storm does is random, by a seed that it says; afterwards nothing is left of it, nothing was thrown, and no request has
// two records.
// @module-tag long
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { createRandom } from '../../http1/mutation.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { goawayFrame } from '../../support/h2-frames.ts';
import { H2WireClient } from '../../support/h2-wire-client.ts';
import { WireClient } from '../../support/wire-client.ts';
import { keepAccepted } from '../accept/accepted-sockets.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

const STORM_MS = 10_000;
/** Two silences, of a host and of its client, and what a busy machine may need besides. */
const SOON_MS = 15_000;
const IDLE_MS = 1_500;
const CLIENTS = 4;
const seed = Number(process.env['STORM_SEED'] ?? Date.now() % 1_000_000);
const random = createRandom(seed);
const pick = <T>(...choices: readonly [T, ...T[]]): T => choices[random(choices.length)] ?? choices[0];
const isHeads = (): boolean => random(2) === 0;
/** Lets so many turns of the event loop pass, so that what follows comes at any moment of what is under way. */
const turns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => setImmediate(resolve));
};

const scripts: readonly [Script, ...Script[]] = [
  ({ response }) => response(200, [], 'x'),
  async ({ head, data, reset }) => {
    await head(200);
    await data(Buffer.alloc(random(300_000)));
    await reset(pick(0, 1, 2, 7, 8, 11));
  },
  ({ reset }) => reset(pick(0, 1, 2, 7, 8, 13)),
  ({ goaway, request }) => goaway(pick(0, request.id, 0x7fffffff), pick(0, 1, 11)),
  ({ connection }) => connection.destroy(),
  ({ connection }) => connection.end(),
  async ({ interim, head, data, trailers }) => {
    await interim(103, [['link', '</a>']]);
    await head(200);
    await data('abc');
    await trailers([['x-end', '1']]);
  },
  async ({ request, response }) => {
    await request.ended();
    await response(200, [], Buffer.alloc(100_000));
  },
  () => undefined,
];
type Script = (exchange: H2Exchange) => unknown;

type Relay = AsyncDisposable & {
  readonly port: number;
  /** Connections that the proxy has not let go of. */
  readonly held: ReadonlySet<Socket>;
};

/** Before the host: half of the connections it breaks behind some byte of what the host says. */
async function createRelay(port: number): Promise<Relay> {
  const [sockets, held] = [new Set<Socket>(), new Set<Socket>()];
  const server = createServer({ allowHalfOpen: true }, (near) => {
    held.add(near);
    for (const event of ['end', 'close']) near.on(event, () => held.delete(near));
    const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => sockets.delete(socket));
    }
    let left = isHeads() ? Number.POSITIVE_INFINITY : random(pick(300, 3_000, 30_000));
    near.pipe(far);
    near.on('close', () => far.destroy());
    // What it says to a host that has gone is read to its end as well.
    far.on('close', () => near.resume());
    far.on('end', () => near.end());
    far.on('data', (bytes: Buffer) => {
      near.write(bytes.subarray(0, left));
      if (bytes.length < left) left -= bytes.length;
      else breakOff(near);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    held,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function breakOff(socket: Socket): void {
  if (isHeads()) socket.end();
  else socket.resetAndDestroy();
}

type Scene = { readonly path: H2Path; readonly authority: string; readonly wires: Set<WireClient> };

/** A client that leaves in the middle of its handshake, or of its first words. */
async function leaveEarly({ path, authority }: Scene): Promise<void> {
  const wire = await WireClient.connect(path.proxy.port);
  await wire.openTunnel(authority);
  const offered = pick(['h2'], ['h2', 'http/1.1']);
  const securing = wire
    .startTls({ ca: path.proxy.caPem, name: 'api.test', alpn: offered })
    .catch(() => undefined);
  if (isHeads()) {
    await securing;
    const first = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
    if (isHeads()) await wire.send(first.slice(0, random(first.length + 1)));
  }
  await turns(random(20));
  if (isHeads()) wire.reset();
  else wire.socket.destroy();
  await securing;
}

let asked = 0;

/** A client that asks for a few things at once, takes some of them back, and leaves in the middle of it all. */
async function ask({ path, authority, wires }: Scene): Promise<void> {
  const trust = { ca: path.proxy.caPem, name: 'api.test', alpn: ['h2'] };
  const wire = await WireClient.connectThrough(path.proxy.port, authority, trust);
  wires.add(wire);
  const client = await H2WireClient.over(wire, authority);
  for (let left = 1 + random(30); left > 0; left -= 1) {
    asked += 1;
    const isPost = random(5) < 2;
    const fields = client.fields(`/${asked}`, [], { ':method': isPost ? 'POST' : 'GET' });
    const stream = await client.open(fields, { isEnd: !isPost });
    if (isPost) stream.data(Buffer.alloc(random(100_000)), { isEnd: random(3) > 0 }).catch(() => undefined);
    if (random(5) === 0) await stream.reset(pick(0, 8, 1));
  }
  await turns(random(100));
  await pick<() => unknown>(
    () => wire.reset(),
    () => wire.end(),
    () => client.send(Buffer.alloc(100, 0xa5)),
    () => client.send(goawayFrame(0)),
    () => undefined,
  )();
  await turns(random(100));
  // Others stay: whatever they have done, they are let go of.
  if (isHeads()) wire.socket.destroy();
}

it(`nothing is left behind by a storm (STORM_SEED=${seed})`, async () => {
  console.info(`STORM_SEED=${seed}`);
  const thrown: unknown[] = [];
  const onThrown = (error: unknown): void => void thrown.push(error);
  process.on('uncaughtExceptionMonitor', onThrown);
  await using path = await createH2Path({
    origin: {
      settings: { max_concurrent_streams: 5 },
      respond: async (exchange) => void (await pick(...scripts)(exchange)),
    },
    proxy: { config: { timeouts: { client_idle_ms: IDLE_MS, response_idle_ms: IDLE_MS } } },
  });
  await using relay = await createRelay(path.origin.port);
  using accepted = keepAccepted(path.proxy.port);
  const wires = new Set<WireClient>();
  const scene = { path, authority: `api.test:${relay.port}`, wires };
  const endMs = performance.now() + STORM_MS;
  const run = async (): Promise<void> => {
    while (performance.now() < endMs)
      // A host that broke off while it was asked for its protocol ends some before they began.
      await (random(5) < 2 ? leaveEarly(scene) : ask(scene)).catch(() => undefined);
  };
  await Promise.all(Array.from({ length: CLIENTS }, run));
  await expect.poll(() => accepted.open, { timeout: SOON_MS }).toBe(0);
  const closingMs = performance.now();
  await path.proxy[Symbol.asyncDispose]();
  expect(performance.now() - closingMs).toBeLessThan(SOON_MS);
  await expect.poll(() => relay.held.size, { timeout: SOON_MS }).toBe(0);
  process.off('uncaughtExceptionMonitor', onThrown);
  for (const wire of wires) wire.socket.destroy();
  expect(thrown).toEqual([]);
  expect(path.proxy.lines.filter(({ level }) => level !== 'info')).toEqual([]);
  const paths = path.proxy.records().flatMap(({ path: at }) => at ?? []);
  expect(new Set(paths).size).toBe(paths.length);
  console.info(`${asked} asked on ${accepted.count} connections, ${paths.length} records`);
  expect(paths.length).toBeGreaterThan(asked / 10);
});

// Bodies in crumbs: each piece costs what a large one costs, while it waits for its host and as it is passed on. Those who
// send small messages do so honestly up to a rate, and lose their connection beyond it.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { dataFrame } from '../../support/h2-frames.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path } from './h2-path.ts';
import { ticks } from './session-ticks.ts';

// The peers of these tests keep copies of what came: out of a pool each of them would hold 64 KiB.
Buffer.poolSize = 0;
setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** What lives, the garbage collected. */
function livingBytes(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const MB = 1_000_000;
/** Of which most is what a busy machine may need. */
const SOON_MS = 20_000;

function openPost(client: H2WireClient): Promise<H2Stream> {
  return client.open(client.fields('/', [], { ':method': 'POST' }));
}

/** So many pieces of a byte in one go. */
function crumbs({ id }: H2Stream, count: number): Buffer {
  const crumb = dataFrame(id, 'c');
  return Buffer.concat(Array.from({ length: count }, () => crumb));
}

describe('what is kept of a body to be sent again', () => {
  it('is little where it is nothing but crumbs, on every stream', async () => {
    const [STREAMS, PIECES] = [20, 900];
    await using path = await createH2Path({ origin: { respond: async () => undefined } });
    const client = await path.client();
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => openPost(client)));
    await path.origin.stream(STREAMS - 1);
    const before = livingBytes();
    for (const stream of streams) await client.send(crumbs(stream, PIECES));
    const isThere = (): boolean => path.origin.streams.every(({ body }) => body.length === PIECES);
    await expect.poll(isThere, { timeout: SOON_MS }).toBe(true);
    expect(livingBytes() - before).toBeLessThan(2 * MB);
  });
});

describe('messages of a stream', () => {
  it('of a byte each, as fast as they go, end the connection: ENHANCE_YOUR_CALM', async () => {
    const [STREAMS, PIECES] = [50, 500];
    await using path = await createH2Path({ origin: { respond: async () => undefined } });
    const client = await path.client();
    const streams = await Promise.all(Array.from({ length: STREAMS }, () => openPost(client)));
    for (let round = 0; round < 100 && !client.peer.isClosed; round += 1)
      for (const stream of streams) if (!(await client.send(crumbs(stream, PIECES)))) break;
    await client.closed;
    // A reset behind it may take it away before it is read.
    for (const { code } of client.peer.goaways) expect(code).toBe('ENHANCE_YOUR_CALM');
    expect(await path.proxy.record(0)).toMatchObject({
      method: 'CONNECT',
      reason: 'client_flood',
      cause: 'pieces',
    });
    await path.proxy.record(STREAMS);
    expect(path.proxy.records()).toHaveLength(STREAMS + 1);
  });

  it('of twenty bytes, ten thousand a second each way, are nobody’s flood', async () => {
    const [SECONDS, PER_TICK] = [2, 2_500];
    const total = SECONDS * 4 * PER_TICK;
    const message = Buffer.alloc(20, 'm');
    const respond = async ({ request, head, data, connection }: H2Exchange): Promise<void> => {
      await head(200);
      for (let echoed = 0; echoed < total; ) {
        const there = (): number | undefined => Math.trunc(request.body.length / 20) - echoed || undefined;
        const count = (await connection.peer?.until(there, 'a message')) ?? 0;
        await Promise.all(Array.from({ length: count }, () => data(message)));
        echoed += count;
      }
      await data('', { isEnd: true });
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const stream = await openPost(client);
    for (let tick = 0; tick < 4 * SECONDS; tick += 1) {
      await Promise.all(Array.from({ length: PER_TICK }, () => stream.data(message)));
      await ticks(1);
    }
    await stream.data('', { isEnd: true });
    expect(await client.response(stream)).toMatchObject({
      status: 200,
      length: total * 20,
      reset: undefined,
    });
    expect(client.peer.goaways).toEqual([]);
    expect(path.proxy.records()).toMatchObject([{ outcome: 'injected', bytes_up: total * 20 }]);
  });
});

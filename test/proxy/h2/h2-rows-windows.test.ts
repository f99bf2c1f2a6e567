// The rows of T-13: windows that stay shut, on either side. Whoever shuts them waits, and nobody else does.
import { describe, expect, it } from 'vitest';
import { rstFrame, settingsFrame, windowFrame } from '../../support/h2-frames.ts';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path } from './h2-path.ts';

const MiB = 1 << 20;
/** What one stream of a host may have waiting in the proxy, with what is under way. */
const WAITING_BYTES = 262_144 + 65_536;
const large = Buffer.alloc(10 * MiB, 'ten MiB of it. ');

/** Keeps count of what each stream was let to send. */
function createGiver(): { sent: Map<number, number>; respond: (exchange: H2Exchange) => Promise<void> } {
  const sent = new Map<number, number>();
  return {
    sent,
    async respond({ request, head, data, response }) {
      if (request.path === '/empty') return void (await response(204));
      if (request.path !== '/large') return void (await response(200, [], 'small'));
      await head(200);
      for (let at = 0; at < large.length; at += 16_384) {
        const isEnd = at + 16_384 >= large.length;
        if (!(await data(large.subarray(at, at + 16_384), { isEnd }))) return;
        sent.set(request.id, at + 16_384);
      }
    },
  };
}

async function openMany(client: H2WireClient, count: number): Promise<readonly H2Stream[]> {
  const streams: H2Stream[] = [];
  for (let n = 0; n < count; n += 1)
    streams.push(await client.open(client.fields('/large'), { isEnd: true }));
  await Promise.all(streams.map((stream) => client.head(stream)));
  return streams;
}

describe('T-13', () => {
  it('a hundred streams with a window of 0 hold up their host, and nobody else', async () => {
    const { sent, respond } = createGiver();
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client({ settings: { initial_window_size: 0 } });
    const streams = await openMany(client, 100);
    const bystander = await path.client();
    for (let n = 0; n < 50; n += 1)
      expect((await bystander.request(bystander.fields('/'))).text).toBe('small');
    expect(client.peer.counts['DATA']).toBeUndefined();
    expect(Math.max(...sent.values())).toBeLessThanOrEqual(WAITING_BYTES);
    // Two of them are let go on, and are whole; the others are given up, and the host hears of it.
    const [first, second, ...others] = streams;
    for (const stream of [first, second]) await stream?.grant(large.length);
    expect((await client.response(first as H2Stream)).length).toBe(large.length);
    expect((await client.response(second as H2Stream)).length).toBe(large.length);
    await client.send(...others.map(({ id }) => rstFrame(id)));
    const given = path.origin.streams.filter((request) => request.path === '/large').slice(2);
    const codes = await Promise.all(given.map((request) => request.resetOrClosed()));
    expect(new Set(codes)).toEqual(new Set(['CANCEL']));
  });

  it('a client that does not read holds up its host', { tags: ['long'] }, async () => {
    const { sent, respond } = createGiver();
    await using path = await createH2Path({ origin: { respond } });
    const settings = { initial_window_size: 0x7fffffff };
    const client = await path.client({ settings, isGranting: false });
    await client.send(windowFrame(0, 0x3fffffff));
    const streams = await openMany(client, 10);
    client.pause();
    const bystander = await path.client();
    for (let n = 0; n < 50; n += 1)
      expect((await bystander.request(bystander.fields('/'))).text).toBe('small');
    const total = (): number => [...sent.values()].reduce((sum, bytes) => sum + bytes, 0);
    expect(total()).toBeLessThan(streams.length * large.length);
    client.resume();
    for (const stream of streams) expect((await client.response(stream)).length).toBe(large.length);
  });

  it('a window that is taken back below nothing stays shut until it is given again', async () => {
    await using path = await createH2Path({ origin: { respond: createGiver().respond } });
    const client = await path.client({ isGranting: false });
    const [stream] = await openMany(client, 1);
    if (!stream) throw new Error('no stream');
    await client.peer.until(() => stream.length === 65_535 || undefined, 'a window');
    await client.send(settingsFrame({ initial_window_size: 0 }), windowFrame(0, large.length));
    // Its window is 65,535 below nothing.
    await client.send(windowFrame(stream.id, 65_535));
    expect(await client.request(client.fields('/empty'))).toMatchObject({ status: 204 });
    expect(stream.length).toBe(65_535);
    await stream.grant(large.length);
    expect((await client.response(stream)).length).toBe(large.length);
  });

  it('a window of one byte at a time is enough', async () => {
    await using path = await createH2Path({ origin: { respond: createGiver().respond } });
    const client = await path.client({ settings: { initial_window_size: 1 } });
    expect((await client.request(client.fields('/'))).text).toBe('small');
    expect(client.peer.counts['DATA']).toBeGreaterThanOrEqual(5);
  });

  it('a stream whose window stays shut is given up after a while', async () => {
    const proxy = { config: { timeouts: { client_idle_ms: 300 } } };
    await using path = await createH2Path({ origin: { respond: createGiver().respond }, proxy });
    const client = await path.client({ settings: { initial_window_size: 0 } });
    const [stream] = await openMany(client, 1);
    expect(await client.response(stream as H2Stream)).toMatchObject({ status: 200, reset: 'CANCEL' });
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_stalled' });
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
  });

  it('a host whose window stays shut holds up its client', async () => {
    await using path = await createH2Path({
      origin: { settings: { initial_window_size: 0 }, isGranting: false },
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    const sent = stream.data(large, { isEnd: true });
    const request = await path.origin.stream(0);
    const bystander = await path.client();
    for (let n = 0; n < 50; n += 1) await bystander.request(bystander.fields('/'));
    expect(request.body.length).toBe(0);
    expect(stream.window).toBe(0);
    const peer = path.origin.connections[request.connection]?.peer;
    // One byte more than the body: nghttp2 does not say the end into a window of nothing.
    await peer?.send(windowFrame(0, large.length), windowFrame(request.id, large.length + 1));
    expect(await sent).toBe(true);
    expect(await client.response(stream)).toMatchObject({ status: 200 });
    expect(request.body.length).toBe(large.length);
  });
});

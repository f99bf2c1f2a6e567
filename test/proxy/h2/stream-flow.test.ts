// The windows of HTTP/2 from end to end: who does not read holds up whoever sends to it, on that stream and no other.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { windowFrame } from '../../support/h2-frames.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path } from './h2-path.ts';

const MiB = 1 << 20;
const large = Buffer.alloc(8 * MiB, 'large ');
/** What one stream may have waiting in the proxy: the host's window and what the streams of Node hold besides. */
const WAITING_BYTES = 262_144 + 131_072;

/** A host that reads `/stalled` never, and all else at once; and that says of each how much it has got rid of. */
function createHost(): { readonly sent: Map<string, number>; respond(exchange: H2Exchange): Promise<void> } {
  const sent = new Map<string, number>();
  return {
    sent,
    async respond({ request, head, data, response }) {
      if (request.method === 'POST') {
        if (await request.ended()) await response(200, [], request.body.sha256);
        return;
      }
      if (!request.path.startsWith('/large')) return void (await response(200, [], 'small'));
      await head(200);
      for (let at = 0; at < large.length; at += 16_384) {
        if (!(await data(large.subarray(at, at + 16_384), { isEnd: at + 16_384 >= large.length }))) return;
        sent.set(request.path, at + 16_384);
      }
    },
  };
}

/** Grants the connection all, and this stream alone nothing more. */
async function openStalled(client: H2WireClient, path: string): Promise<H2Stream> {
  const stream = await client.open(client.fields(path), { isEnd: true });
  await client.head(stream);
  await client.peer.until(() => stream.length === 65_535 || undefined, 'a full window');
  await client.send(windowFrame(0, 65_535));
  return stream;
}

describe('one stream whose client does not read', () => {
  it('waits by itself: the others of its connection get responses, small and large', async () => {
    const { sent, respond } = createHost();
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client({ isGranting: false });
    const stalled = await openStalled(client, '/large/1');
    for (let n = 0; n < 100; n += 1) expect((await client.request(client.fields('/'))).text).toBe('small');
    const other = await client.open(client.fields('/large/2'), { isEnd: true });
    await other.grant(large.length);
    await client.send(windowFrame(0, large.length));
    expect((await client.response(other)).length).toBe(large.length);
    expect(stalled.length).toBe(65_535);
    expect(sent.get('/large/1')).toBeLessThan(65_535 + WAITING_BYTES);
    // And by itself it goes on.
    await client.send(windowFrame(0, large.length));
    await stalled.grant(large.length);
    expect(await client.response(stalled)).toMatchObject({
      length: large.length,
      sha256: (await client.response(other)).sha256,
    });
  });

  it('of many holds up none of the others, and the host of each', async () => {
    const { sent, respond } = createHost();
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client({ isGranting: false });
    const stalled: H2Stream[] = [];
    for (let n = 0; n < 50; n += 1) stalled.push(await openStalled(client, `/large/${n}`));
    expect((await client.request(client.fields('/'))).text).toBe('small');
    expect(Math.max(...sent.values())).toBeLessThan(65_535 + WAITING_BYTES);
    await client.send(windowFrame(0, 50 * large.length));
    const last = stalled.at(-1) as H2Stream;
    await last.grant(large.length);
    expect((await client.response(last)).length).toBe(large.length);
  });
});

describe('one stream whose host does not read', () => {
  it('waits by itself: the other uploads of its connection arrive', async () => {
    const { respond } = createHost();
    await using path = await createH2Path({ origin: { isGranting: false, respond } });
    const client = await path.client();
    const post = (name: string): Promise<H2Stream> =>
      client.open(client.fields(name, [], { ':method': 'POST' }));
    const stalled = await post('/stalled');
    let hasLeft = false;
    void stalled.data(large, { isEnd: true }).then(() => (hasLeft = true));
    const request = await path.origin.stream(0);
    const peer = path.origin.connections[0]?.peer;
    await peer?.until(() => request.body.length === 65_535 || undefined, 'a full window');
    await peer?.send(windowFrame(0, 3 * large.length));
    const other = await post('/other');
    const sent = other.data(large, { isEnd: true });
    const reading = await path.origin.stream(1);
    await peer?.stream(reading.id).grant(large.length);
    expect(await sent).toBe(true);
    const { status, text } = await client.response(other);
    expect({ status, connection: reading.connection }).toEqual({ status: 200, connection: 0 });
    expect([hasLeft, request.body.length]).toEqual([false, 65_535]);
    // What the client got rid of beyond what has arrived is a bounded amount.
    expect(peer?.streams.get(request.id)?.length).toBe(65_535);
    await peer?.stream(request.id).grant(large.length);
    expect((await client.response(stalled)).text).toBe(text);
  });

  it('keeps its client waiting with no more than a window in between', async () => {
    await using path = await createH2Path({ origin: { isGranting: false, respond: createHost().respond } });
    const client = await path.client();
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    let got = 0;
    const send = async (): Promise<void> => {
      for (let at = 0; at < large.length; at += 16_384) {
        if (!(await stream.data(large.subarray(at, at + 16_384)))) return;
        got = at + 16_384;
      }
    };
    // Its window never comes.
    send().catch(() => undefined);
    const request = await path.origin.stream(0);
    const peer = path.origin.connections[0]?.peer;
    await peer?.until(() => request.body.length === 65_535 || undefined, 'a full window');
    const bystander = await path.client();
    for (let n = 0; n < 50; n += 1) await bystander.request(bystander.fields('/'));
    expect(got).toBeLessThan(65_535 + WAITING_BYTES);
    await stream.reset();
    expect(await request.resetOrClosed()).toBe('CANCEL');
  });
});

describe('the windows that hosts and clients are granted', () => {
  it('hold what a link with a long way needs', async () => {
    await using path = await createH2Path({ origin: { respond: createHost().respond } });
    const client = await path.client();
    await client.request(client.fields('/'));
    const peer = path.origin.connections[0]?.peer;
    expect(peer?.remote.initial_window_size).toBe(262_144);
    // Of the connection: all of its streams share it.
    expect(peer?.window).toBeGreaterThanOrEqual(4 * 262_144);
  });
});

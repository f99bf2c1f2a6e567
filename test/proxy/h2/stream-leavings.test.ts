// What is left of a stream whose client is done with it, and what a client may leave out: none of it is another's to bear.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { goawayFrame, headersFrame } from '../../support/h2-frames.ts';
import { encodeBlock } from '../../support/hpack.ts';
import { createH2Path } from './h2-path.ts';

const POST = { ':method': 'POST' };

/** A host that grants no window beyond the first. */
const grudging = { isGranting: false };

describe('a response that came before its host has taken the body', () => {
  it('leaves its stream its place until that is over, and not for long', async () => {
    const respond = async ({ request, response }: H2Exchange): Promise<void> => {
      if (request.method === 'POST') await response(200, [], 'early');
      else await response(200, [], 'ok');
    };
    // The whole body would fit into no window of it.
    const origin = { ...grudging, settings: { initial_window_size: 1_000 }, respond };
    await using path = await createH2Path({ origin });
    const first = await path.client();
    const responses = await Promise.all(
      Array.from({ length: 20 }, () =>
        first.request(first.fields('/', [], POST), { body: Buffer.alloc(60_000) }),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    const second = await path.client();
    expect((await second.request(second.fields('/'))).text).toBe('ok');
    // On a session that is its own.
    const posts = new Set(path.origin.streams.slice(0, 20).map(({ connection }) => connection));
    expect(posts.has(path.origin.streams[20]?.connection ?? -1)).toBe(false);
    for (const stream of path.origin.streams.slice(0, 20))
      expect(await stream.resetOrClosed()).toBe('CANCEL');
    expect(path.proxy.records().map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: 21 }, () => 'injected'),
    );
  });
});

describe('a client that resets an upload which its host does not take', () => {
  it.each(['NO_ERROR', 'CANCEL', 'INTERNAL_ERROR'] as const)('with %s is noticed at once', async (code) => {
    const respond = async (): Promise<void> => {};
    await using path = await createH2Path({ origin: { ...grudging, respond } });
    const client = await path.client();
    const stream = await client.open(client.fields('/', [], POST));
    void stream.data(Buffer.alloc(300_000));
    const request = await path.origin.stream(0);
    await path.origin.connections[0]?.peer?.until(
      () => (request.body.length >= 65_535 ? true : undefined),
      'a full window',
    );
    await stream.reset(code);
    expect(await request.resetOrClosed()).toBe('CANCEL');
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
      cause: code,
    });
  });
});

describe('the numbers of streams', () => {
  it.each([3, 13, 2 ** 31 - 3])('may begin with %i: nothing is recorded of those left out', async (id) => {
    await using path = await createH2Path();
    const client = await path.client();
    const stream = client.peer.stream(id);
    await client.send(headersFrame(id, encodeBlock(client.fields('/')), { isEnd: true }));
    expect((await client.response(stream)).status).toBe(200);
    const bystander = await path.client();
    // Longer than the proxy looks away.
    const until = performance.now() + 600;
    while (performance.now() < until) await bystander.request(bystander.fields('/'));
    const own = path.proxy.records().filter(({ reason }) => reason === 'malformed_request');
    expect(own).toEqual([]);
  });
});

describe('a client that says goodbye with an error', () => {
  it('has broken no rule', async () => {
    await using path = await createH2Path();
    const client = await path.client();
    await client.request(client.fields('/'));
    await client.send(goawayFrame(0, 'ENHANCE_YOUR_CALM', ''));
    await client.closed;
    const next = await path.client();
    await next.request(next.fields('/'));
    expect(path.proxy.records().map(({ outcome }) => outcome)).toEqual(['injected', 'injected']);
  });
});

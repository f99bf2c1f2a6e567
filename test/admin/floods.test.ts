import { channel } from 'node:diagnostics_channel';
import { describe, expect, it } from 'vitest';
import { createAdminScene, OWN, request } from './admin-scene.ts';

const BURST = 'GET / HTTP/1.1\r\n\r\n'.repeat(3400);

/** Counts the requests that Node's parser finds on all connections, and the most within one turn of the event loop. */
function countRequests(): Disposable & { readonly seen: { all: number; most: number } } {
  const seen = { all: 0, most: 0 };
  let inTurn = 0;
  let isOver = false;
  const count = (): void => {
    seen.all += 1;
    inTurn += 1;
    seen.most = Math.max(seen.most, inTurn);
  };
  const turn = (): void => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  const started = channel('http.server.request.start');
  started.subscribe(count);
  turn();
  return {
    seen,
    [Symbol.dispose]() {
      isOver = true;
      started.unsubscribe(count);
    },
  };
}

describe('a second request before the response to the first', () => {
  it.each([
    [
      'with unusual framing, then garbage',
      'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' +
        'POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"x"' +
        'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' +
        'garbage\r\n\r\n',
    ],
    ['that is an ordinary one', String(request('GET', '/healthz')).repeat(2)],
    [
      'with a body that is not read',
      String(request('DELETE', '/v1/sandboxes/x', { body: 'x' })) + String(request('GET', '/')),
    ],
    ['in great number', BURST],
  ])('ends the connection and nothing else: %s', async (_, bytes) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    await client.send(bytes).catch(() => undefined);
    expect(['end', 'ECONNRESET', 'EPIPE']).toContain(await client.finished);
    expect((await scene.ask('GET', '/healthz')).head.status).toBe(200);
    expect(scene.logLines).toEqual([]);
  });

  it('leaves the record of the first, and none of its own', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const change = request('PATCH', '/v1/sandboxes/default', { body: {} });
    await client.send(Buffer.concat([change, change]));
    await client.finished;
    expect(await scene.record(0)).toMatchObject({ action: 'sandbox.change', client: '127.0.0.1' });
    await scene.server.close(0);
    expect(scene.records).toHaveLength(1);
  });
});

describe('a burst of requests', () => {
  it('on many connections costs each turn of the event loop a bounded number of them', async () => {
    await using scene = await createAdminScene();
    await using other = await createAdminScene();
    using counted = countRequests();
    const clients = await Promise.all(Array.from({ length: 64 }, () => scene.connect()));
    for (const client of clients) void client.send(BURST).catch(() => undefined);
    expect((await other.ask('GET', '/healthz')).head.status).toBe(200);
    for (const client of clients) await client.finished;
    // A piece holds 56 of them, and at most 16 connections are unauthenticated.
    expect(counted.seen.most).toBeLessThanOrEqual(17 * 57);
    expect(counted.seen.all).toBeLessThanOrEqual(65 * 57);
    expect((await scene.ask('GET', '/v1/proxy_config', { fields: OWN })).head.status).toBe(200);
    for (const client of clients) await client[Symbol.asyncDispose]();
  });
});

import { channel } from 'node:diagnostics_channel';
import { describe, expect, it } from 'vitest';
import { createAdminScene, createGatedTarget, OWN, request } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
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

describe('connections', () => {
  it('over the limit replace the oldest one that has not shown the token', async () => {
    await using scene = await createAdminScene({ limits: { connections: 3 } });
    await using operator = await scene.connect();
    await operator.send(request('GET', PATH));
    expect((await operator.readResponse()).head.status).toBe(200);
    await using first = await scene.connect();
    await using second = await scene.connect();
    await using third = await scene.connect();
    expect(['end', 'ECONNRESET']).toContain(await first.finished);
    for (const client of [operator, second, third]) {
      await client.send(request('GET', '/healthz'));
      expect((await client.readResponse()).head.status).toBe(200);
    }
  });

  it('that have not shown the token have a lower limit', async () => {
    await using scene = await createAdminScene({ limits: { unauthenticated: 2 } });
    await using first = await scene.connect();
    await using second = await scene.connect();
    await using third = await scene.connect();
    expect(['end', 'ECONNRESET']).toContain(await first.finished);
    for (const client of [second, third]) {
      await client.send(request('GET', PATH));
      expect((await client.readResponse()).head.status).toBe(200);
    }
    await using fourth = await scene.connect();
    await fourth.send(request('GET', '/healthz', { fields: ['Host: localhost'] }));
    expect((await fourth.readResponse()).head.status).toBe(200);
  });

  it('that all have shown the token are ended when idle, the longest idle one first', async () => {
    await using scene = await createAdminScene({ limits: { connections: 2 } });
    await using first = await scene.connect();
    await using second = await scene.connect();
    for (const client of [first, second, first]) {
      await client.send(request('GET', PATH));
      expect((await client.readResponse()).head.status).toBe(200);
    }
    await using third = await scene.connect();
    expect(['end', 'ECONNRESET']).toContain(await second.finished);
    for (const client of [first, third]) {
      await client.send(request('GET', PATH));
      expect((await client.readResponse()).head.status).toBe(200);
    }
  });

  it('that all have shown the token stay while a request runs', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target, limits: { connections: 1 } });
    await using operator = await scene.connect();
    await operator.send(request('PATCH', '/v1/sandboxes/default', { body: {} }));
    await gated.begun;
    await using other = await scene.connect();
    expect(['end', 'ECONNRESET']).toContain(await other.finished);
    gated.open();
    expect((await operator.readResponse()).head.status).toBe(200);
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

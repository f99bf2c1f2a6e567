import { describe, expect, it } from 'vitest';
import type { AdminResponse } from '../../src/admin/admin-errors.ts';
import { RateLimit } from '../../src/base/http/rate-limit.ts';
import { WriteGate } from '../../src/admin/write-gate.ts';
import type { AdminTarget } from '../../src/admin/target.ts';
import { createAdminScene, field, OWN, readResponse, request, SANDBOX } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
const BEGUN = ['Content-Type: application/json', 'Content-Length: 10'];

/** A target whose writes wait for `open`, and which counts how many run at once. */
function createGatedTarget(): {
  readonly target: Partial<AdminTarget>;
  readonly seen: { running: number; most: number; started: number };
  readonly begun: Promise<void>;
  open(): void;
} {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const seen = { running: 0, most: 0, started: 0 };
  return {
    seen,
    begun: begun.promise,
    open: gate.resolve,
    target: {
      async changeSandbox() {
        seen.started += 1;
        seen.running += 1;
        seen.most = Math.max(seen.most, seen.running);
        begun.resolve();
        await gate.promise;
        seen.running -= 1;
        return { ok: true, value: { sandbox: SANDBOX } };
      },
    },
  };
}

describe('a client that is slow', () => {
  const limits = { requestMs: 150 };

  it('to send anything is disconnected', async () => {
    await using scene = await createAdminScene({ limits });
    await using client = await scene.connect();
    expect(await client.finished).toBe('end');
  });

  it('with a head gets a 408 with the fields that every response has', async () => {
    await using scene = await createAdminScene({ limits });
    await using client = await scene.connect();
    await client.send('GET / HTTP/1.1\r\nHost: loc');
    const response = await client.readResponse();
    expect([response.head.status, field(response, 'cache-control'), field(response, 'connection')]).toEqual([
      408,
      'no-store',
      'close',
    ]);
    expect(JSON.parse(response.text).detail).toMatch(/sooner/);
    expect(await client.finished).toBe('end');
  });

  it('with a body gets a 408 and leaves one record', async () => {
    await using scene = await createAdminScene({ limits });
    await using client = await scene.connect();
    await client.send(request('PUT', PATH, { more: BEGUN }));
    await client.send('{"a"');
    const response = await client.readResponse();
    expect([response.head.status, field(response, 'connection')]).toEqual([408, 'close']);
    expect(await client.finished).toBe('end');
    expect(scene.records).toMatchObject([{ action: 'proxy_config.apply', status: 408, outcome: 'failed' }]);
    expect(scene.calls).toEqual([]);
  });

  it('with its next request is disconnected', async () => {
    await using scene = await createAdminScene({ limits: { keepAliveMs: 100 } });
    await using client = await scene.connect();
    await client.send(request('GET', '/healthz'));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(await client.finished).toBe('end');
  });

  it('in reading its response is disconnected', async () => {
    const document = { text: 'x'.repeat(32 * 1024 * 1024) };
    const target = { proxyConfig: () => ({ revision: 1, etag: '"e"', document }) };
    await using scene = await createAdminScene({ limits, target });
    await using client = await scene.connect();
    await client.send(request('GET', PATH));
    expect((await client.readHead()).status).toBe(200);
    client.socket.pause();
    // Resolves once every connection is gone; this one would stay for ever.
    await scene.server.close(60_000);
  });
});

describe('a head', () => {
  it('over 16 KiB is a 431', async () => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/', { more: [`X-Long: ${'x'.repeat(17_000)}`] });
    expect([response.head.status, field(response, 'x-content-type-options')]).toEqual([431, 'nosniff']);
  });

  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00])],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a folded field', 'GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n'],
    ['a bare line feed', 'GET / HTTP/1.1\nHost: localhost\n\n'],
  ])('that is %s is a 400', async (_, bytes) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    await client.send(bytes);
    const response = await client.readResponse();
    expect(response.head.status).toBe(400);
    expect(typeof JSON.parse(response.text).detail).toBe('string');
  });

  it('that is malformed, behind a running request, ends the connection without a second response', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    await using client = await scene.connect();
    await client.send(request('PATCH', '/v1/sandboxes/default', { body: {} }));
    await gated.begun;
    await client.send('nonsense\r\n\r\n');
    await client.finished;
    gated.open();
    expect(await scene.record(0)).toMatchObject({ status: 200, outcome: 'done' });
    expect(client.transcript).toBe('');
  });
});

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

describe('writes', () => {
  const change = request('PATCH', '/v1/sandboxes/default', { body: {} });

  it('run one at a time, eight at most wait, and reads pass them', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    const clients = await Promise.all(Array.from({ length: 8 }, () => scene.connect()));
    // Each is inside once it is asked for its body.
    for (const client of clients) {
      await client.send(
        request('PATCH', '/v1/sandboxes/default', {
          more: ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2'],
        }),
      );
      expect((await client.readHead()).status).toBe(100);
    }
    const ninth = await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} });
    expect([ninth.head.status, field(ninth, 'retry-after')]).toEqual([503, '1']);
    expect((await scene.ask('GET', PATH)).head.status).toBe(200);
    for (const client of clients) await client.send('{}');
    await gated.begun;
    // Handled after everything that arrived before them: by then every document was read.
    for (let turn = 0; turn < 3; turn += 1) await scene.ask('GET', PATH);
    gated.open();
    for (const client of clients) {
      expect((await readResponse(client)).head.status).toBe(200);
      await client[Symbol.asyncDispose]();
    }
    expect(gated.seen).toEqual({ running: 0, most: 1, started: 8 });
    expect((await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} })).head.status).toBe(200);
  });

  it('over so many a second are a 429', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 3 } });
    await using client = await scene.connect();
    const reported: unknown[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      await client.send(change);
      const response = await readResponse(client);
      reported.push(response.head.status, field(response, 'retry-after'));
    }
    expect(reported).toEqual([200, undefined, 200, undefined, 200, undefined, 429, '1']);
  });

  it('behind one that does not end are rejected and never done, until it ends', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target, limits: { stallMs: 50 } });
    await using client = await scene.connect();
    await client.send(change);
    await gated.begun;
    for (let turn = 0; turn < 2; turn += 1) {
      const behind = await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} });
      expect([behind.head.status, field(behind, 'retry-after')]).toEqual([503, '10']);
      expect(JSON.parse(behind.text).detail).toContain('does not end');
    }
    expect(scene.records.map(({ reason }) => reason)).toEqual(['busy', 'busy']);
    gated.open();
    expect((await client.readResponse()).head.status).toBe(200);
    expect((await scene.ask('PATCH', '/v1/sandboxes/default', { body: {} })).head.status).toBe(200);
    expect(gated.seen).toEqual({ running: 0, most: 1, started: 2 });
  });

  it('behind one that is known not to end are rejected at once', async () => {
    const gate = new WriteGate(8, new RateLimit(100, 1000, () => 0), 20);
    const { promise, resolve } = Promise.withResolvers<AdminResponse>();
    const hung = gate.run(() => promise);
    expect(gate.enter()).toBeUndefined();
    expect(await gate.run(() => ({ status: 200 }))).toMatchObject({ status: 503, reason: 'busy' });
    expect(gate.enter()).toMatchObject({ status: 503, reason: 'busy' });
    resolve({ status: 204 });
    expect(await hung).toEqual({ status: 204 });
    expect(await gate.run(() => ({ status: 200 }))).toEqual({ status: 200 });
    expect(gate.enter()).toBeUndefined();
  });

  it('of callers without the token do not count', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 1, writesAtOnce: 1 } });
    for (let turn = 0; turn < 3; turn += 1)
      await scene.ask('PUT', PATH, { fields: ['Host: localhost'], body: {} });
    expect((await scene.ask('PUT', PATH, { body: {} })).head.status).toBe(200);
  });
});

describe('close', () => {
  it('lets the request that runs end, and idle connections at once', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    await using idle = await scene.connect();
    await idle.send(request('GET', '/healthz'));
    await idle.readResponse();
    await using client = await scene.connect();
    await client.send(request('PATCH', '/v1/sandboxes/default', { body: {} }));
    await gated.begun;
    const closed = scene.server.close(60_000);
    expect(['end', 'ECONNRESET']).toContain(await idle.finished);
    await expect(scene.connect()).rejects.toThrow('ECONNREFUSED');
    gated.open();
    const response = await client.readResponse();
    expect([response.head.status, field(response, 'connection')]).toEqual([200, 'close']);
    await closed;
  });

  it('lets a client read a response that is not yet sent to its end', async () => {
    const document = { text: 'x'.repeat(8 * 1024 * 1024) };
    const target = { proxyConfig: () => ({ revision: 1, etag: '"e"', document }) };
    await using scene = await createAdminScene({ target });
    await using client = await scene.connect();
    await client.send(request('GET', PATH));
    await client.readHead();
    const closed = scene.server.close(60_000);
    expect((await client.readBody()).length).toBeGreaterThan(8 * 1024 * 1024);
    client.end();
    await closed;
  });

  it('ends what still runs after its time', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    await using client = await scene.connect();
    await client.send(request('PATCH', '/v1/sandboxes/default', { body: {} }));
    await gated.begun;
    await scene.server.close(50);
    expect(['end', 'ECONNRESET']).toContain(await client.finished);
    gated.open();
  });

  it('waits for a write whose client has left', async () => {
    const gated = createGatedTarget();
    await using scene = await createAdminScene({ target: gated.target });
    const client = await scene.connect();
    await client.send(request('PATCH', '/v1/sandboxes/default', { body: {}, fields: OWN }));
    await gated.begun;
    client.reset();
    // When this has a response, the server has seen the reset.
    await scene.ask('GET', PATH);
    let isClosed = false;
    const closed = scene.server.close(60_000).then(() => (isClosed = true));
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect([isClosed, scene.records]).toEqual([false, []]);
    gated.open();
    await closed;
    expect(scene.records).toMatchObject([{ action: 'sandbox.change', status: 200, outcome: 'done' }]);
  });
});

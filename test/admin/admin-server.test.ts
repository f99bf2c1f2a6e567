import { describe, expect, it } from 'vitest';
import { createAdminScene, createGatedTarget, field, OWN, request } from './admin-scene.ts';

const PATH = '/v1/proxy_config';
const BURST = 'GET / HTTP/1.1\r\n\r\n'.repeat(3400);
const BEGUN = ['Content-Type: application/json', 'Content-Length: 10'];

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

describe('what serves the connections', () => {
  it('is loaded once, for all that come first', async () => {
    let loads = 0;
    await using scene = await createAdminScene({ onLoad: () => (loads += 1) });
    expect(loads).toBe(0);
    const replies = await Promise.all([1, 2, 3].map(() => scene.ask('GET', '/healthz')));
    expect([loads, ...replies.map(({ head }) => head.status)]).toEqual([1, 200, 200, 200]);
  });

  it('is not loaded for an end without a connection', async () => {
    let loads = 0;
    const scene = await createAdminScene({ onLoad: () => (loads += 1) });
    await scene.server.close(60_000);
    await scene.server.settled();
    expect(loads).toBe(0);
  });

  it('ends the connections and is reported if it cannot be loaded', async () => {
    const onLoad = (): never => {
      throw new TypeError('no');
    };
    await using scene = await createAdminScene({ onLoad });
    await using client = await scene.connect();
    expect(['end', 'ECONNRESET']).toContain(await client.finished);
    expect(scene.logLines.join('')).toContain('the admin API cannot be loaded');
  });
});

it('is loaded by the next connection if the first could not load it', async () => {
  let loads = 0;
  const onLoad = (): void => {
    loads += 1;
    if (loads === 1) throw new Error('no free file descriptor');
  };
  await using scene = await createAdminScene({ onLoad });
  await using first = await scene.connect();
  await first.finished;
  await using second = await scene.connect();
  await second.send(request('GET', PATH));
  expect((await second.readResponse()).head.status).toBe(200);
  expect(loads).toBe(2);
});

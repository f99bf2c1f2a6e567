// The gateway with real sockets: what a target gets, what a client gets back, and what is recorded.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { type Refusal, refuse } from '../../src/gateway/refusal.ts';
import { createOrigin, type RecordingOrigin, response } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { type NodeHandler, openNodeTarget } from './node-target.ts';
import { createGatewayScene, type GatewayScene, type SceneOptions } from './gateway-scene.ts';

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

async function use<T extends AsyncDisposable>(made: Promise<T>): Promise<T> {
  const one = await made;
  stack.push(one);
  return one;
}

async function scene(
  options: SceneOptions = {},
): Promise<{ origin: RecordingOrigin; gateway: GatewayScene }> {
  const origin = await use(createOrigin());
  const targets = { 'app.test': { host: '127.0.0.1', port: origin.port } };
  return { origin, gateway: await use(createGatewayScene({ targets, ...options })) };
}

/** A target on node:http. */
async function target(handle: NodeHandler): Promise<number> {
  const opened = await openNodeTarget(handle);
  stack.push(opened);
  return opened.port;
}

function gatewayTo(port: number, options: SceneOptions = {}): Promise<GatewayScene> {
  return use(createGatewayScene({ targets: { 'app.test': { host: '127.0.0.1', port } }, ...options }));
}

const get = (path: string, ...fields: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: app.test', ...fields, '', ''].join('\r\n');

const fieldsOf = ({
  headers,
}: {
  readonly headers: readonly (readonly [string, string])[];
}): readonly string[] => headers.map(([name, value]) => `${name.toLowerCase()}: ${value}`);

describe('what the target gets', () => {
  it('the path byte for byte, Host as sent, and the forwarding fields of the gateway alone', async () => {
    const { origin, gateway } = await scene();
    await using client = await gateway.connect();
    const claims = [
      'X-Forwarded-For: 1.1.1.1',
      'x_forwarded_proto: https',
      'X-Forwarded-Server: a',
      'Forwarded: for=1',
      'X-Real-IP: 1',
      'X-Forwarded: for=1',
      'X-Client-IP: 1',
      'X-Cluster-Client-IP: 1',
      'True-Client-IP: 1',
      'CF-Connecting-IP: 1',
      'Fastly-Client-IP: 1',
      'Forwarded-For: 1',
      'X-Original-URL: /admin',
      'X-Rewrite-URL: /admin',
      'X-Forwarded-URI: /admin',
    ];
    await client.send(get('//a/../b%2e?', 'Accept: x', 'X-A: 1', 'X-A: 2', ...claims));
    expect((await client.readResponse()).head.status).toBe(200);
    const [seen] = origin.requests;
    expect(seen?.target).toBe('//a/../b%2e?');
    expect(seen && fieldsOf(seen)).toEqual([
      'host: app.test',
      'accept: x',
      'x-a: 1',
      'x-a: 2',
      'x-forwarded-for: 127.0.0.1',
      'x-forwarded-host: app.test',
      'x-forwarded-proto: http',
      'connection: keep-alive',
    ]);
  });

  it.each(['DELETE', 'OPTIONS', 'GET'])('%s without a body gets no length', async (method) => {
    const { origin, gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(get('/x').replace('GET', method));
    await client.readResponse();
    expect(origin.requests[0]?.head).not.toMatch(/content-length|transfer-encoding/i);
  });

  it('no fields of the client hop, nominated ones included', async () => {
    const { origin, gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(
      get(
        '/',
        'Connection: x-a, keep-alive',
        'X-A: 1',
        'Keep-Alive: 5',
        'TE: trailers',
        'Proxy-Authorization: p',
        'Trailer: t',
      ),
    );
    await client.readResponse();
    expect(origin.requests[0]?.head).not.toMatch(/x-a|keep-alive: |te:|proxy-|trailer/i);
  });

  const credentials = [
    'Cookie: a=1; session=s; b=2',
    'Authorization: Bearer t',
    'X-Api-Key: k',
    'X_API_KEY: k',
    'X-Own-Key: o',
  ];

  it('no credential of the caller', async () => {
    const { origin, gateway } = await scene({ credentialFields: ['x-own-key'] });
    await using client = await gateway.connect();
    await client.send(get('/', ...credentials));
    await client.readResponse();
    expect(
      origin.requests[0] && fieldsOf(origin.requests[0]).filter((line) => !/^(host|x-forw|conn)/.test(line)),
    ).toEqual([]);
  });

  it('the credentials that authorize passes, without the cookies that it names', async () => {
    const authorize = (): object => ({ passes: ['cookie', 'authorization'], withoutCookies: ['session'] });
    const { origin, gateway } = await scene({ credentialFields: ['x-own-key'], authorize });
    await using client = await gateway.connect();
    await client.send(get('/', ...credentials));
    await client.readResponse();
    const seen =
      origin.requests[0] && fieldsOf(origin.requests[0]).filter((line) => !/^(host|x-forw|conn)/.test(line));
    expect(seen).toEqual(['authorization: Bearer t', 'cookie: a=1; b=2']);
  });

  it('Expect, and the body once it asks for it', async () => {
    const { origin, gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(
      'POST /a? HTTP/1.1\r\nHost: app.test\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n',
    );
    expect((await client.readHead()).status).toBe(100);
    expect(origin.requests[0]?.body).toBeUndefined();
    await client.send('abc');
    expect((await client.readResponse()).head.status).toBe(200);
    expect([origin.requests[0]?.target, origin.requests[0]?.body?.content.toString()]).toEqual([
      '/a?',
      'abc',
    ]);
  });

  it('the head of a body that has not begun', async () => {
    const { origin, gateway } = await scene();
    await using client = await gateway.connect();
    await client.send('POST /a HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n');
    expect((await origin.request(0)).target).toBe('/a');
  });

  it('a request over a Unix socket', async () => {
    const scratch = await use(createScratch());
    const socketPath = join(scratch.path, 't.sock');
    const server = createServer((_, outgoing) => void outgoing.end('unix'));
    await new Promise<void>((done) => server.listen(socketPath, done));
    const gateway = await use(createGatewayScene({ targets: { 'app.test': { socketPath } } }));
    await using client = await gateway.connect();
    await client.send(get('/', 'Connection: close'));
    expect((await client.readResponse()).text).toBe('unix');
    server.closeAllConnections();
    server.close();
  });
});

describe('what the client gets', () => {
  it('the response without the fields of the target hop', async () => {
    const hop = [
      'Connection: x-b',
      'X-B: 1',
      'Keep-Alive: timeout=5',
      'Proxy-Authenticate: Basic',
      'Alt-Svc: h2=":1"',
      'Upgrade: h2c',
      'X-Sallyport-Error: forbidden',
    ];
    const origin = await use(
      createOrigin({
        respond: async ({ send }) =>
          send(
            `HTTP/1.1 201 Made So\r\n${hop.join('\r\n')}\r\nX-C: 1\r\nX-C: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok`,
          ),
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send(get('/'));
    const { head, text } = await client.readResponse();
    expect([head.status, head.reason, text]).toEqual([201, 'Made So', 'ok']);
    expect(fieldsOf(head).filter((line) => !line.startsWith('date: '))).toEqual([
      'x-c: 1',
      'x-c: 2',
      'set-cookie: a',
      'set-cookie: b',
      'content-length: 2',
      'connection: keep-alive',
    ]);
  });

  it('every field of a response, however many there are', async () => {
    const many = 'a:\r\n'.repeat(2_500);
    const origin = await use(
      createOrigin({
        respond: ({ send }) => send(`HTTP/1.1 200 OK\r\n${many}Set-Cookie: a\r\nContent-Length: 2\r\n\r\nok`),
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send(get('/'));
    const { head } = await client.readResponse();
    expect(
      fieldsOf(head)
        .filter((line) => line !== 'a: ')
        .slice(0, 2),
    ).toEqual(['set-cookie: a', 'content-length: 2']);
  });

  it('a 204 without the length that it must not have', async () => {
    const origin = await use(
      createOrigin({ respond: ({ send }) => send('HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\n') }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    for (const _ of [1, 2]) {
      await client.send(get('/'));
      const { head } = await client.readResponse();
      expect([head.status, head.text.toLowerCase().includes('content-length')]).toEqual([204, false]);
    }
  });

  it('an event stream as it is sent, its head first', async () => {
    const { promise: opened, resolve } = Promise.withResolvers<ServerResponse>();
    const port = await target((_, outgoing) => {
      outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
      resolve(outgoing);
    });
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send(get('/'));
    expect((await client.readHead()).status).toBe(200);
    const stream = await opened;
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      stream.write(text);
      expect(await client.readThrough('\n\n\r\n')).toContain(text);
    }
  });

  it.each([
    ['an unknown target', { findTarget: (): undefined => undefined }, 404, 'target_not_found', undefined],
    [
      'a target that is not ready',
      { findTarget: (): Refusal => refuse('target_unavailable', { retryAfterMs: 2_500 }) },
      503,
      'target_unavailable',
      '3',
    ],
    ['a caller that is refused', { authorize: () => refuse('forbidden') }, 403, 'forbidden', undefined],
    [
      'a caller without a key',
      { authorize: () => refuse('unauthenticated', { challenge: 'Bearer' }) },
      401,
      'unauthenticated',
      undefined,
    ],
    [
      'a decision that throws',
      { authorize: () => Promise.reject(new Error('secret')) },
      500,
      'internal_error',
      undefined,
    ],
    [
      'a target that does not listen',
      { targets: { 'app.test': { host: '127.0.0.1', port: 1 } } },
      502,
      'target_unreachable',
      undefined,
    ],
  ] as const)('%s', async (_, options, status, code, retryAfter) => {
    const { origin, gateway } = await scene(options);
    await using client = await gateway.connect();
    for (const index of [0, 1]) {
      await client.send(get('/?q=v', 'X-S: v'));
      const { head, text } = await client.readResponse();
      expect([head.status, JSON.parse(text).code]).toEqual([status, code]);
      expect(new Map(head.headers).get('Retry-After')).toBe(retryAfter);
      expect(await gateway.record(index)).toMatchObject({
        method: 'GET',
        status,
        refusal: code,
        end: 'complete',
      });
    }
    expect(origin.requests).toEqual([]);
    expect(JSON.stringify(gateway.records)).not.toContain('v"');
  });

  it('its response after it sent its FIN', async () => {
    const { gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(get('/'));
    client.end();
    expect((await client.readResponse()).head.status).toBe(200);
    expect(await client.finished).toBe('end');
  });

  it('every response of requests that it sent before its FIN', async () => {
    const { gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(get('/1') + get('/2') + get('/3'));
    client.end();
    for (const target of ['/1', '/2', '/3'])
      expect(JSON.parse((await client.readResponse()).text)).toMatchObject({ target });
    expect(await client.finished).toBe('end');
    expect(gateway.records).toHaveLength(3);
  });

  it.each([
    ['that asks for it', get('/', 'Connection: close')],
    ['of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: app.test\r\n\r\n'],
  ])('the end of the connection after a request %s, which is recorded once', async (_, bytes) => {
    const { gateway } = await scene();
    await using client = await gateway.connect();
    await client.send(bytes);
    expect((await client.readResponse()).head.status).toBe(200);
    expect(await client.finished).toBe('end');
    expect(await gateway.record(0)).toMatchObject({ status: 200, end: 'complete' });
    expect(gateway.records).toHaveLength(1);
  });

  it('all of a response whose target has closed, however late it is read', async () => {
    const size = 8 * 1024 * 1024;
    const port = await target((_, outgoing) => {
      outgoing.writeHead(200, { Connection: 'close' }).end(Buffer.alloc(size));
    });
    const gateway = await gatewayTo(port);
    const outgoing = httpRequest({ port: gateway.port, headers: { Host: 'app.test' } }).end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    let got = 0;
    for await (const chunk of incoming) {
      got += (chunk as Buffer).length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([got, incoming.complete]).toEqual([size, true]);
  });

  it('an early refusal of the target that closes while the body is being sent', async () => {
    const body = 'too large '.repeat(1_000);
    const origin = await use(
      createOrigin({
        respond: async ({ send, end }) => {
          await send(response(413, [['Connection', 'close']], body));
          end();
        },
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send('POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 10000000\r\n\r\n');
    // Written as long as anybody reads it.
    const sending = client.send(Buffer.alloc(10_000_000)).catch(() => undefined);
    expect(await client.readResponse()).toMatchObject({ head: { status: 413 }, text: body });
    expect(await gateway.record(0)).toMatchObject({ status: 413, end: 'complete' });
    await client[Symbol.asyncDispose]();
    await sending;
  });

  it('a response that closes, when it is of HTTP/1.0', async () => {
    const port = await target((_, outgoing) => void outgoing.write('a', () => outgoing.end('b')));
    const gateway = await gatewayTo(port);
    await using client = await gateway.connect();
    await client.send('GET / HTTP/1.0\r\nHost: app.test\r\n\r\n');
    const { head, text } = await client.readResponse();
    expect([text, fieldsOf(head)]).toEqual([
      'ab',
      expect.not.arrayContaining(['transfer-encoding: chunked']),
    ]);
    expect(await client.finished).toBe('end');
  });
});

describe('a connection that fails', () => {
  it.each([
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n', 'HTTP/1.1'],
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde', 'HTTP/1.1'],
    ['to HTTP/1.0', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n', 'HTTP/1.0'],
  ])('a body that the target cuts off is cut off for the client: %s', async (_, bytes, version) => {
    const origin = await use(createOrigin({ respond: async ({ send, reset }) => send(bytes).then(reset) }));
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send(get('/').replace('HTTP/1.1', version));
    const read = client.readResponse().then(
      ({ body }) => `complete: ${String(body.content)}`,
      () => 'cut',
    );
    expect(await gateway.record(0)).toMatchObject({ end: 'cut', status: 200, refusal: undefined });
    const end = await client.finished;
    expect(version === 'HTTP/1.0' ? end : await read).toBe(version === 'HTTP/1.0' ? 'ECONNRESET' : 'cut');
  });

  it.each([
    ['no head', 'garbage\r\n\r\n', 'target_response_invalid'],
    [
      'both framings',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      'target_response_invalid',
    ],
    [
      'a status below 200 as the last',
      'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n',
      'target_response_invalid',
    ],
    ['a status above 599', 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n', 'target_response_invalid'],
    [
      'a 101 that was not asked for',
      'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      'target_response_invalid',
    ],
    [
      'another coding than chunked',
      'HTTP/1.1 200 X\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'target_response_invalid',
    ],
    [
      'chunks with HTTP/1.0',
      'HTTP/1.0 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'target_response_invalid',
    ],
    [
      'a field that goes on in the next line',
      'HTTP/1.1 200 X\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n',
      'target_response_invalid',
    ],
    ['nothing', '', 'target_closed'],
  ])('a target that sends %s is a 502', async (_, bytes, code) => {
    const origin = await use(
      createOrigin({ respond: async ({ send, end }) => (bytes === '' ? end() : send(bytes)) }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    await client.send(get('/'));
    const { head, text } = await client.readResponse();
    expect([head.status, JSON.parse(text).code]).toEqual([502, code]);
    await client.send(get('/'));
    expect((await client.readResponse()).head.status).toBe(502);
  });

  it.each(['fin', 'rst'] as const)(
    'a client that leaves within its body (%s) aborts the request to the target',
    async (how) => {
      const aborted = Promise.withResolvers<boolean>();
      const begun = Promise.withResolvers<void>();
      const port = await target((incoming) => {
        incoming.once('data', () => begun.resolve());
        incoming.on('error', () => undefined).on('close', () => aborted.resolve(!incoming.complete));
      });
      const gateway = await gatewayTo(port);
      const client = await gateway.connect();
      await client.send(
        'POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n',
      );
      await begun.promise;
      if (how === 'fin') client.end();
      else client.reset();
      expect(await aborted.promise).toBe(true);
      expect(await gateway.record(0)).toMatchObject({ end: 'left', status: undefined });
      await client[Symbol.asyncDispose]();
    },
  );

  it('a client that leaves before its response aborts the request to the target', async () => {
    const closed = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const port = await target((_, outgoing) => {
      outgoing.on('close', closed.resolve);
      begun.resolve();
    });
    const gateway = await gatewayTo(port);
    const client = await gateway.connect();
    await client.send(get('/'));
    await begun.promise;
    client.reset();
    await closed.promise;
    expect(await gateway.record(0)).toMatchObject({ end: 'left', status: undefined });
  });

  it('the rest of a body behind an early response is no request', async () => {
    const origin = await use(
      createOrigin({
        respond: async ({ send, readBody }) => {
          await send(response(200, [], 'early'));
          await readBody();
        },
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    const smuggled = get('/smuggled');
    await client.send(
      `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: ${smuggled.length + 3}\r\n\r\nabc`,
    );
    const { head, text } = await client.readResponse();
    expect([text, new Map(head.headers).get('Connection')]).toEqual(['early', 'close']);
    await client.send(smuggled).catch(() => undefined);
    expect(await client.readToEnd().catch(() => 'reset')).toMatch(/^$|^reset$/);
    expect(origin.requests.map(({ target: path }) => path)).toEqual(['/']);
    expect(gateway.records).toHaveLength(1);
  });

  it('bytes behind a response are the response of no other request', async () => {
    const origin = await use(
      createOrigin({
        respond: async ({ send, request }) => {
          await send(response(200, [], request.target));
          if (request.target === '/1') await send(response(200, [], 'poison'));
        },
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    for (const path of ['/1', '/2', '/3']) {
      await client.send(get(path));
      expect((await client.readResponse()).text).toBe(path);
    }
  });

  it('a connection that a client authenticated carries the request of no other', async () => {
    const { origin, gateway } = await scene({ authorize: () => ({ passes: ['authorization'] }) });
    await using client = await gateway.connect();
    for (const scheme of ['NTLM', 'negotiate', 'Basic', 'Basic']) {
      await client.send(get('/', `Authorization: ${scheme} abc`));
      await client.readResponse();
    }
    expect(origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 2, 2]);
  });

  it('a request without effects is repeated when a kept connection was closed, any other is a 502', async () => {
    let connections = 0;
    const origin = await use(
      createOrigin({
        respond: async ({ send, request, reset, readBody }) => {
          if (request.connection < connections) return reset();
          connections += 1;
          await readBody();
          await send(response(200, [], request.method));
        },
      }),
    );
    const gateway = await gatewayTo(origin.port);
    await using client = await gateway.connect();
    const statuses: number[] = [];
    for (const method of ['GET', 'GET', 'GET', 'POST', 'POST']) {
      await client.send(get('/').replace('GET', method));
      statuses.push((await client.readResponse()).head.status);
    }
    // The second and the fourth are sent on a kept connection, which the target resets.
    expect(statuses).toEqual([200, 200, 200, 502, 200]);
  });
});

it('curl gets, posts and uploads', async () => {
  const port = await target(async (incoming, outgoing) => {
    let length = 0;
    for await (const chunk of incoming) length += (chunk as Buffer).length;
    outgoing.end(`${incoming.method} ${incoming.url} ${length}`);
  });
  const gateway = await gatewayTo(port);
  const scratch = await use(createScratch());
  const file = await scratch.write('upload', 'x'.repeat(3_000_000));
  const curl = async (...args: readonly string[]): Promise<string> => {
    const url = `http://127.0.0.1:${gateway.port}/c`;
    const { stdout } = await promisify(execFile)('curl', ['-sS', '-H', 'Host: app.test', ...args, url]);
    return stdout;
  };
  expect(await curl()).toBe('GET /c 0');
  expect(await curl('-d', 'a=b')).toBe('POST /c 3');
  expect(await curl('-T', file)).toBe('PUT /c 3000000');
  expect(await curl('-T', file, '-H', 'Transfer-Encoding: chunked')).toBe('PUT /c 3000000');
});

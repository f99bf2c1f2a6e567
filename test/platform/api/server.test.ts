// The listener of the API, byte by byte: what is rejected before the API sees it, what every response has, and how the
// listener closes.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type HttpResponse, jsonResponse } from '../../../src/base/http/http-response.ts';
import { createLog } from '../../../src/base/log.ts';
import { z } from '../../../src/base/schema.ts';
import type { Api } from '../../../src/platform/api/api-request.ts';
import { clientAddress, noProxies, parseTrustedProxies } from '../../../src/platform/api/client-address.ts';
import { type ServerLimits, defaultLimits } from '../../../src/platform/api/limits.ts';
import { toErrorResponse } from '../../../src/platform/api/errors.ts';
import { readParts } from '../../../src/platform/api/request-parts.ts';
import { type FinishedRequest, type Server, openServer } from '../../../src/platform/api/server.ts';
import { WireClient, type WireResponse } from '../../support/wire-client.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

type Stage = {
  readonly server: Server;
  readonly port: number;
  readonly lines: string[];
  readonly finished: FinishedRequest[];
};
const opened: Server[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close();
});

/** Responds with the request as the pipeline reads it. */
const echo: Api = async (request) => {
  request.note({ route: '/things/{id}', keyId: 'key-1', organizationId: 'organization-1' });
  try {
    const { body } = await readParts({ body: z.unknown() }, request, { params: {}, search: '' }, 1000);
    const { client, head } = request;
    return jsonResponse(200, { method: head.method, url: head.target, body, host: client.host });
  } catch (error) {
    const response = toErrorResponse(error);
    if (response === undefined) throw error;
    return response;
  }
};
const respond = (body = ''): HttpResponse => ({ status: 200, body });

async function open(
  api: Api = echo,
  limits: Partial<ServerLimits> = {},
  trusted: readonly string[] = [],
): Promise<Stage> {
  const lines: string[] = [];
  const finished: FinishedRequest[] = [];
  const server = await openServer({
    api,
    listen: { host: '127.0.0.1', port: 0 },
    limits: { ...defaultLimits, drainMs: 2000, ...limits },
    trustedProxies: parseTrustedProxies(trusted) ?? noProxies,
    log: createLog('info', { write: (line) => void lines.push(line) }),
    onFinished: (request) => void finished.push(request),
  });
  opened.push(server);
  return { server, port: Number(new URL(server.url).port), lines, finished };
}

async function ask(port: number, text: string): Promise<WireResponse> {
  await using client = await WireClient.connect(port);
  await client.send(text);
  return await client.readResponse();
}

const field = ({ head }: WireResponse, name: string): string | undefined =>
  head.headers.find(([one]) => one.toLowerCase() === name)?.[1];

describe('every response', () => {
  it('has an id of its own, is not cached, and leaves one line without path, query and values', async () => {
    const { port, lines, finished } = await open();
    const response = await ask(
      port,
      'GET /things/4711?token=hush HTTP/1.1\r\nHost: a\r\nX-Api-Key: hush\r\n\r\n',
    );
    expect(response.head.status).toBe(200);
    const id = field(response, 'x-request-id');
    expect(id).toMatch(UUID);
    expect(field(response, 'cache-control')).toBe('no-store');
    expect(field(response, 'x-content-type-options')).toBe('nosniff');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        msg: 'request',
        method: 'GET',
        path: '/things/{id}',
        status: 200,
        ms: expect.any(Number),
        key: 'key-1',
        organization: 'organization-1',
        request: id,
      },
    ]);
    expect(lines.join('')).not.toMatch(/hush|4711/);
    expect(finished).toEqual([
      { method: 'GET', route: '/things/{id}', status: 200, seconds: expect.any(Number) },
    ]);
  });

  it('has the id of the request if that is well-formed', async () => {
    const { port } = await open();
    const kept = await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc-1.2_3\r\n\r\n');
    expect(field(kept, 'x-request-id')).toBe('abc-1.2_3');
    for (const id of ['a b', 'x'.repeat(129), '<script>', '']) {
      const response = await ask(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`);
      expect(field(response, 'x-request-id')).toMatch(UUID);
    }
  });

  it('to HEAD has the head of GET and no body', async () => {
    const { port } = await open(async () => respond('four'));
    await using client = await WireClient.connect(port);
    await client.send('HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const head = await client.readHead();
    expect(head.headers).toContainEqual(['Content-Length', '4']);
    expect(await client.readToEnd()).toBe('');
  });
});

describe('a head that is unacceptable is rejected before the API sees it', () => {
  it('for its method with the methods that are allowed (RFC 9110 §15.5.6)', async () => {
    const { port } = await open();
    for (const text of [
      'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n',
      'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n',
    ])
      expect(field(await ask(port, text), 'allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE');
  });

  const rows: readonly (readonly [string, string, number])[] = [
    ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', 405],
    ['a Host whose port is too large', 'GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n', 400],
    ['a Host of four numbers that are no address', 'GET / HTTP/1.1\r\nHost: 256.256.256.256\r\n\r\n', 400],
    ['absolute-form', 'GET http://a/ok HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['asterisk-form', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n', 400],
    ['userinfo in Host', 'GET / HTTP/1.1\r\nHost: me@a\r\n\r\n', 400],
    ['another Expect', 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\nContent-Length: 1\r\n\r\n', 417],
    ['a coding', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 400],
    ['chunked 1.0', 'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    [
      'two framings',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ['a body on GET', 'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx', 400],
    ['dot segments', 'GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['coded dot segments', 'GET /a/%2E%2e/b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a backslash', 'GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['a fragment', 'GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a long head', `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ];
  it.each(rows)('%s', async (_, text, status) => {
    let asked = 0;
    const { port } = await open(async () => {
      asked += 1;
      return respond();
    });
    const response = await ask(port, text);
    expect([response.head.status, asked]).toEqual([status, 0]);
    expect(JSON.parse(response.text)).toEqual({
      detail: expect.stringMatching(/^[A-Z]/),
      code: expect.stringMatching(/^[a-z_]+$/),
    });
    expect(field(response, 'x-request-id')).toMatch(UUID);
    expect(field(response, 'connection')).toBe('close');
  });
});

describe('a body', () => {
  it('that is too long is rejected while it still arrives, and the client reads why', async () => {
    const { port } = await open();
    const announced = await ask(
      port,
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n${'x'.repeat(3000)}`,
    );
    expect(announced.head.status).toBe(413);
    await using client = await WireClient.connect(port);
    await client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    await client.send(`5dc\r\n${'x'.repeat(1500)}\r\n`);
    const counted = await client.readResponse();
    expect([counted.head.status, field(counted, 'connection')]).toEqual([413, 'close']);
  });

  it('of thousands of one-byte chunks is rejected while it still arrives, and the connection ends', async () => {
    const { port } = await open(async ({ body }) => {
      try {
        return jsonResponse(200, (await body.read(100_000)).length);
      } catch (error) {
        return toErrorResponse(error) ?? respond();
      }
    });
    const text = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    const response = await ask(port, text + '1\r\nx\r\n'.repeat(5_000));
    expect([response.head.status, field(response, 'connection'), JSON.parse(response.text).code]).toEqual([
      ...[400, 'close', 'tiny_chunks'],
    ]);
    expect((await ask(port, `${text}${'1\r\nx\r\n'.repeat(4_000)}0\r\n\r\n`)).text).toBe('4000\n');
  });

  it('is asked for with a 100 only when it will be read', async () => {
    const { port } = await open();
    await using client = await WireClient.connect(port);
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length:';
    await client.send(`${head} 2\r\n\r\n`);
    expect((await client.readHead()).status).toBe(100);
    await client.send('{}');
    expect((await client.readResponse()).head.status).toBe(200);
    const refused = await ask(port, `${head} 5000\r\n\r\n`);
    expect(refused.head.status).toBe(413);
  });

  it('of HTTP/1.0 is not asked for', async () => {
    const { port } = await open();
    const head = 'POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n';
    expect((await ask(port, `${head}{}`)).head.status).toBe(200);
  });

  it('that does not arrive gets a 408 in time', async () => {
    const { port, finished } = await open(echo, { requestMs: 300 });
    const late = await ask(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{');
    expect(late.head.status).toBe(408);
    const head = await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\n');
    expect(head.head.status).toBe(408);
    expect(finished.map(({ status }) => status)).toEqual([408, 408]);
  });

  it('with broken framing is rejected', async () => {
    const { port } = await open();
    const broken = await ask(port, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');
    expect(broken.head.status).toBe(400);
  });

  it('whose client leaves is not logged as an error', async () => {
    const done = Promise.withResolvers<void>();
    const { port, lines } = await open(async (request) => {
      const response = await echo(request);
      done.resolve();
      return response;
    });
    await using client = await WireClient.connect(port);
    await client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{');
    client.reset();
    await done.promise;
    expect(lines.filter((line) => line.includes('"error"'))).toEqual([]);
  });
});

describe('a connection', () => {
  it('has one running request', async () => {
    const held = Promise.withResolvers<void>();
    let requests = 0;
    const { port, finished } = await open(async () => {
      requests += 1;
      // The second arrives with the first, in the same turn.
      setImmediate(held.resolve);
      await held.promise;
      return respond();
    });
    await using client = await WireClient.connect(port);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n');
    expect((await client.readResponse()).head.status).toBe(200);
    await client.finished;
    expect([requests, finished.length, client.transcript.match(/HTTP\/1\.1 /g)?.length]).toEqual([1, 1, 1]);
  });

  it('over the limit is closed', async () => {
    const { port } = await open(echo, { connections: 1 });
    await using first = await WireClient.connect(port);
    await first.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await first.readResponse();
    await using second = await WireClient.connect(port);
    await second.finished;
    expect(second.transcript).toBe('');
  });

  it('whose client leaves aborts the signal of its request', async () => {
    const aborted = Promise.withResolvers<void>();
    const { port, finished, lines } = await open(async (request) => {
      request.left().addEventListener('abort', () => aborted.resolve());
      await aborted.promise;
      return respond();
    });
    await using client = await WireClient.connect(port);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    client.reset();
    await aborted.promise;
    expect(finished.map(({ status }) => status)).toEqual([499]);
    expect(lines).toHaveLength(1);
  });

  it('on which the API fails is cut, and the failure is logged', async () => {
    const { port, lines } = await open(() => Promise.reject(new Error('hush')));
    await using client = await WireClient.connect(port);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.finished;
    expect(lines.some((line) => line.includes('"level":"error"'))).toBe(true);
    expect(lines.join('')).not.toContain('hush');
  });
});

describe('the address of a client', () => {
  const hosts = async (trusted: readonly string[], forwarded: string): Promise<unknown> => {
    const { port } = await open(echo, {}, trusted);
    const response = await ask(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${forwarded}\r\n\r\n`);
    return JSON.parse(response.text).host;
  };
  it('is that of its socket, whatever it says itself', async () => {
    expect(await hosts([], '198.51.100.7')).toBe('127.0.0.1');
  });
  it('at a unix socket is what a trusted proxy there says, and else unknown', () => {
    const socket = { remoteAddress: undefined, remotePort: undefined };
    const hostOf = (forwarded: string | undefined, isBehindProxy: boolean) =>
      clientAddress(socket, forwarded, noProxies, isBehindProxy).host;
    expect(hostOf('198.51.100.7', false)).toBeUndefined();
    expect(hostOf(undefined, true)).toBeUndefined();
    expect(hostOf('192.0.2.1, 198.51.100.7', true)).toBe('198.51.100.7');
  });
  it('goes with the port of its socket, and with none behind a proxy', async () => {
    const seen: (number | undefined)[] = [];
    const { port } = await open(
      async (request) => {
        seen.push(request.client.port);
        return respond();
      },
      {},
      ['127.0.0.0/8'],
    );
    await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n');
    expect(seen).toEqual([expect.any(Number), undefined]);
  });
  it('is known for each request that is served, also when the client resets its connection right after one', async () => {
    const hosts: (string | undefined)[] = [];
    const { port } = await open(async (request) => {
      hosts.push(request.client.host);
      return echo(request);
    });
    for (let count = 0; count < 20; count += 1) {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write('DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n');
      socket.resetAndDestroy();
      await once(socket, 'close');
    }
    await ask(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']));
  });

  it('is what a trusted proxy wrote, and nothing to the left of it', async () => {
    expect(await hosts(['127.0.0.0/8'], '203.0.113.9, 198.51.100.7')).toBe('198.51.100.7');
    expect(await hosts(['127.0.0.0/8', '10.0.0.0/8'], '203.0.113.9, 198.51.100.7, 10.1.2.3')).toBe(
      '198.51.100.7',
    );
    expect(await hosts(['127.0.0.0/8'], '203.0.113.9, unknown')).toBe('127.0.0.1');
  });

  it.each([
    ['203.0.113.9:8080', '203.0.113.9'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:', '127.0.0.1'],
    ['203.0.113.9:http', '127.0.0.1'],
    ['203.0.113:80', '127.0.0.1'],
  ])('is read from the entry %s of a proxy', async (entry, host) => {
    expect(await hosts(['127.0.0.0/8'], entry)).toBe(host);
  });
});

describe('closing', () => {
  it('waits for running requests, serves open connections once more, and accepts no connection', async () => {
    const held = Promise.withResolvers<HttpResponse>();
    const api: Api = (request) =>
      request.head.target.endsWith('/held') ? held.promise : Promise.resolve(respond('ok'));
    const { server, port } = await open(api);
    await using slow = await WireClient.connect(port);
    await using idle = await WireClient.connect(port);
    await idle.send('GET /first HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(field(await idle.readResponse(), 'connection')).toBe('keep-alive');
    await slow.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
    await idle.send('GET /second HTTP/1.1\r\nHost: a\r\n\r\n');
    await idle.readResponse();
    expect(server.running).toBe(1);

    const closed = server.close();
    await idle.send('GET /third HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(field(await idle.readResponse(), 'connection')).toBe('close');
    await expect(WireClient.connect(port)).rejects.toThrow('ECONNREFUSED');
    held.resolve(respond('at last'));
    const last = await slow.readResponse();
    expect([last.text, field(last, 'connection')]).toEqual(['at last', 'close']);
    await closed;
  });

  it('does not wait for ever', async () => {
    const { server, port, finished } = await open(() => new Promise(() => {}), { drainMs: 50 });
    await using client = await WireClient.connect(port);
    await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await expect.poll(() => server.running).toBe(1);
    await server.close();
    await client.finished;
    await expect.poll(() => finished.map(({ status }) => status)).toEqual([499]);
  });
});

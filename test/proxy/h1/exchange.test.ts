// One request and its response: interim responses, expectations, early responses, versions, broken upstreams, and what is
// retried.
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../support/recording-origin.ts';
import type { WireClient } from '../../support/wire-client.ts';
import { type DataPath, createDataPath, errorOf, head } from '../data-path.ts';

const empty = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** Responds to every request with these bytes, then closes the connection if `ends`. */
const respondingWith =
  (bytes: string, ends = false) =>
  async ({ send, end, readBody }: Exchange): Promise<void> => {
    await readBody();
    await send(bytes);
    if (ends) end();
  };

async function ask(path: DataPath, ...lines: string[]): Promise<WireClient> {
  const [first = 'GET / HTTP/1.1', ...fields] = lines;
  const client = await path.tunnel();
  await client.send(head(first, `Host: ${path.authority}`, ...fields));
  return client;
}

describe('a response', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    [
      'with a length',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    ],
    [
      'in chunks, made canonical',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n005;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    ],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'HTTP/1.1 204 No Content\r\n\r\n'],
    [
      '304 with a length',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: "x"\r\n\r\n',
      'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: "x"\r\n\r\n',
    ],
    [
      'without a reason',
      'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'with a redirect, which is never followed',
      'HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 302 Found\r\nLocation: https://evil.test/\r\nContent-Length: 0\r\n\r\n',
    ],
    [
      'whose fields are odd but legal',
      'HTTP/1.1 299 \xe9\r\nx-A:  b \r\nX-a:\r\nSet-Cookie: a\r\nSet-Cookie: b\r\ncontent-LENGTH: 0\r\n\r\n',
      'HTTP/1.1 299 \xe9\r\nx-A:  b \r\nX-a:\r\nSet-Cookie: a\r\nSet-Cookie: b\r\ncontent-LENGTH: 0\r\n\r\n',
    ],
  ];
  it.each(rows)(
    '%s reaches the client, and the connection serves the next request',
    async (_, sent, arrives) => {
      let count = 0;
      await using path = await createDataPath({
        respond: ({ send }) => send(Buffer.from((count += 1) === 1 ? sent : empty, 'latin1')),
      });
      const client = await ask(path);
      expect(await client.readThrough(arrives)).toBe(arrives);
      await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
      expect(await client.readThrough(empty)).toBe(empty);
      expect([path.origin.connections, (await path.proxy.record(1))['upstream_reused']]).toEqual([1, true]);
    },
  );

  it('to HEAD has a length and no body', async () => {
    await using path = await createDataPath({
      respond: respondingWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'),
    });
    const client = await ask(path, 'HEAD / HTTP/1.1');
    expect((await client.readHead()).headers).toContainEqual(['Content-Length', '5']);
    await client.send(head('HEAD /2 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.connections).toBe(1);
  });

  it('to HEAD with a body nevertheless loses the body, and its connection is closed', async () => {
    await using path = await createDataPath({
      respond: respondingWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/'),
    });
    const client = await ask(path, 'HEAD / HTTP/1.1');
    await client.readHead();
    await client.send(head('HEAD /2 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.connections).toBe(2);
    expect(client.transcript).not.toContain('HTTP/HTTP/');
  });

  it('with a second one behind it is relayed alone: the next request gets its own', async () => {
    let count = 0;
    await using path = await createDataPath({
      respond: ({ send }) => {
        count += 1;
        const own = `HTTP/1.1 200 OK\r\nX-Number: ${count}\r\nContent-Length: 0\r\n\r\n`;
        return send(`${own}HTTP/1.1 200 OK\r\nX-Number: poison\r\nContent-Length: 0\r\n\r\n`);
      },
    });
    const client = await ask(path);
    expect((await client.readResponse()).head.headers).toContainEqual(['X-Number', '1']);
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.headers).toContainEqual(['X-Number', '2']);
    expect(path.origin.connections).toBe(2);
  });

  it('without framing lasts until the upstream closes, and the client sees the close', async () => {
    await using path = await createDataPath({
      respond: respondingWith('HTTP/1.1 200 OK\r\n\r\nhello', true),
    });
    const client = await ask(path);
    expect(await client.readToEnd()).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200, unframed: true });
  });

  it('that says Connection: close leaves the client its own connection', async () => {
    await using path = await createDataPath({
      respond: respondingWith('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
    });
    const client = await ask(path);
    expect(await client.readThrough(empty)).toBe(empty);
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    expect(await client.readThrough(empty)).toBe(empty);
    expect(path.origin.connections).toBe(2);
  });

  it('from HTTP/1.0 closes the connection to its upstream', async () => {
    const old = 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok';
    await using path = await createDataPath({ respond: respondingWith(old) });
    const client = await ask(path);
    // The client's connection is of HTTP/1.1 and stays open.
    const sent = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
    expect(await client.readThrough(sent)).toBe(sent);
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).text).toBe('ok');
    expect(path.origin.connections).toBe(2);
  });
});

describe('an upstream that does not respond in HTTP/1.1', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['no HTTP at all', 'SSH-2.0-OpenSSH\r\n', 'upstream_malformed'],
    [
      'length and coding',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello',
      'upstream_malformed',
    ],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
      'upstream_malformed',
    ],
    [
      'a coding we do not know',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
      'upstream_malformed',
    ],
    [
      'a bare LF in a field',
      'HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n',
      'upstream_malformed',
    ],
    ['status 099', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n', 'upstream_malformed'],
    [
      '101 that nobody asked for',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      'upstream_malformed',
    ],
    [
      '407',
      'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n',
      'upstream_asks_proxy_auth',
    ],
    ['407 without a challenge', 'HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n', 'upstream_asks_proxy_auth'],
    [
      'a proxy challenge on 200',
      'HTTP/1.1 200 OK\r\nProxy-Authenticate: Negotiate\r\nContent-Length: 0\r\n\r\n',
      'upstream_asks_proxy_auth',
    ],
    ['a head beyond 32 KiB', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(32_768)}\r\n\r\n`, 'upstream_malformed'],
    ['21 interim responses', `${'HTTP/1.1 103 Early\r\n\r\n'.repeat(21)}${empty}`, 'upstream_malformed'],
  ];
  it.each(rows)('but with %s is a 502, and the client may go on', async (_, sent, code) => {
    let count = 0;
    await using path = await createDataPath({
      respond: ({ send }) => send((count += 1) === 1 ? sent : empty),
    });
    const client = await ask(path);
    let response = await client.readHead();
    while (response.status === 103) response = await client.readHead();
    expect([response.status, errorOf(response)]).toEqual([502, code]);
    await client.readBody();
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.connections).toBe(2);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: code, status: 502 });
  });

  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.', 'truncated'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf.\r\n', 'truncated'],
  ])('to its end, by %s, is a cut that the client sees', async (_, sent, cause) => {
    await using path = await createDataPath({ respond: respondingWith(sent, true) });
    const client = await ask(path);
    expect((await client.readHead()).status).toBe(200);
    await expect(client.readBody()).rejects.toThrow();
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_truncated',
      cause,
      status: 200,
    });
  });

  it('in the middle of its chunks is a cut that the client sees', async () => {
    await using path = await createDataPath({
      respond: respondingWith('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf.\r\nzz\r\n'),
    });
    const client = await ask(path);
    expect((await client.readHead()).status).toBe(200);
    await expect(client.readBody()).rejects.toThrow();
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_malformed',
      cause: 'chunk_size_malformed',
    });
  });

  it('up to the close, in plaintext, is a reset: a FIN would mean that it is complete', async () => {
    const wasRead = Promise.withResolvers<void>();
    await using path = await createDataPath({
      isClear: true,
      respond: async ({ send, reset }) => {
        await send('HTTP/1.1 200 OK\r\n\r\nhalf of it');
        await wasRead.promise;
        reset();
      },
    });
    const client = await path.plain();
    const authority = `other.test:${path.origin.port}`;
    await client.send(head(`GET http://${authority}/ HTTP/1.1`, `Host: ${authority}`));
    expect(await client.readThrough('half of it')).toContain('200 OK');
    wasRead.resolve();
    expect(await client.finished).toBe('ECONNRESET');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'upstream_truncated' });
  });

  it('at all within its time is a 504', async () => {
    await using path = await createDataPath({
      config: { timeouts: { response_idle_ms: 50 } },
      respond: () => new Promise(() => {}),
    });
    const client = await ask(path);
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([504, 'upstream_timeout']);
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_timeout',
      cause: 'response',
    });
  });

  it('any more in the middle of a response is a cut', async () => {
    await using path = await createDataPath({
      config: { timeouts: { response_idle_ms: 50 } },
      respond: async ({ send }) => {
        await send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.');
        await new Promise(() => {});
      },
    });
    const client = await ask(path);
    expect((await client.readHead()).status).toBe(200);
    await expect(client.readBody()).rejects.toThrow();
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'upstream_idle' });
  });
});

describe('Expect: 100-continue', () => {
  const expecting = ['POST / HTTP/1.1', 'Content-Length: 5', 'Expect: 100-continue'] as const;

  it('is decided by the upstream: the body is sent only after its 100', async () => {
    const seen = Promise.withResolvers<number>();
    await using path = await createDataPath({
      respond: async ({ request, reader, send, readBody }) => {
        expect(request.headers).toContainEqual(['Expect', '100-continue']);
        seen.resolve(reader.buffered);
        await send('HTTP/1.1 100 Continue\r\n\r\n');
        await readBody();
        await send(empty);
      },
    });
    const client = await ask(path, ...expecting);
    expect((await client.readHead()).status).toBe(100);
    expect(await seen.promise).toBe(0);
    await client.send('hello');
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.requests[0]?.body?.content.toString()).toBe('hello');
  });

  it('does not send a body that came at once before the upstream asks for it', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      config: { timeouts: { continue_ms: 60_000 } },
      respond: async ({ send, readBody }) => {
        await gate.promise;
        await send('HTTP/1.1 100 Continue\r\n\r\n');
        await readBody();
        await send(empty);
      },
    });
    const client = await ask(path, ...expecting);
    await client.send('hello');
    await path.origin.request(0);
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\n$/);
    gate.resolve();
    expect((await client.readHead()).status).toBe(100);
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\nhello$/);
  });

  it('sends the body after a timeout if the upstream is silent, and no 100 is invented', async () => {
    await using path = await createDataPath({
      config: { timeouts: { continue_ms: 20 } },
      respond: respondingWith(empty),
    });
    const client = await ask(path, ...expecting);
    await client.send('hello');
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.requests[0]?.body?.content.toString()).toBe('hello');
  });

  it('declined by a final response closes both connections, because no body will come', async () => {
    await using path = await createDataPath({
      respond: ({ request, send }) =>
        send(request.target === '/' ? 'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n' : empty),
    });
    const client = await ask(path, ...expecting);
    expect(await client.readToEnd()).toBe(
      'HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    );
    const next = await ask(path, 'GET /next HTTP/1.1');
    expect((await next.readHead()).status).toBe(200);
    expect(path.origin.connections).toBe(2);
  });

  it('declined while the whole body is buffered closes both connections too: the upstream still expects it', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      config: { timeouts: { continue_ms: 60_000 } },
      respond: async ({ request, send }) => {
        if (request.target === '/') await gate.promise;
        await send(request.target === '/' ? 'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n' : empty);
      },
    });
    const client = await ask(path, ...expecting);
    await client.send('hello');
    await path.origin.request(0);
    gate.resolve();
    expect((await client.readToEnd()).startsWith('HTTP/1.1 401 ')).toBe(true);
    const next = await ask(path, 'GET /next HTTP/1.1');
    expect((await next.readHead()).status).toBe(200);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/', '/next']);
    expect(path.origin.connections).toBe(2);
  });

  it('of anything else is a 417 and reaches no host', async () => {
    await using path = await createDataPath();
    const client = await ask(path, 'POST / HTTP/1.1', 'Content-Length: 5', 'Expect: magic');
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([417, 'expectation_failed']);
    expect(path.origin.connections).toBe(0);
  });
});

describe('an interim response', () => {
  it('is forwarded in order before the final one', async () => {
    await using path = await createDataPath({
      respond: respondingWith(
        `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\nAlt-Svc: h3=":1"\r\n\r\n${empty}`,
      ),
    });
    const client = await ask(path);
    const responses = [await client.readHead(), await client.readHead(), await client.readHead()];
    expect(responses.map(({ status }) => status)).toEqual([102, 103, 200]);
    expect(responses[1]?.headers).toEqual([['Link', '</a>']]);
  });

  it('100 that was not requested is not forwarded', async () => {
    await using path = await createDataPath({
      respond: respondingWith(`HTTP/1.1 100 Continue\r\n\r\n${empty}`),
    });
    const client = await ask(path);
    expect((await client.readHead()).status).toBe(200);
  });

  it('is not forwarded to an HTTP/1.0 client', async () => {
    await using path = await createDataPath({
      respond: respondingWith(`HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`),
    });
    const client = await ask(path, 'GET / HTTP/1.0');
    expect(await client.readToEnd()).toBe(
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    );
  });
});

describe('a response before the end of the body', () => {
  it('is forwarded completely, then both connections are closed', async () => {
    await using path = await createDataPath({
      respond: async ({ request, send }) => {
        await send(
          request.target === '/next' ? empty : 'HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno',
        );
      },
    });
    const client = await ask(path, 'POST / HTTP/1.1', 'Content-Length: 1000000');
    await client.send('x'.repeat(1_000));
    const response = await client.readResponse();
    expect([response.head.status, response.text]).toEqual([413, 'no']);
    expect(response.head.headers).toContainEqual(['Connection', 'close']);
    expect(await client.readToEnd()).toBe('');
    const next = await ask(path, 'GET /next HTTP/1.1');
    expect((await next.readHead()).status).toBe(200);
    expect(path.origin.connections).toBe(2);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 413 });
  });

  it('does not forward what follows the body', async () => {
    await using path = await createDataPath({
      respond: ({ send }) => send(empty).then(() => new Promise(() => {})),
    });
    const client = await ask(path, 'POST / HTTP/1.1', 'Content-Length: 5');
    await client.readHead();
    await client.send(`hello${head('GET /2 HTTP/1.1', `Host: ${path.authority}`)}`).catch(() => undefined);
    expect(await client.readToEnd()).toBe('');
    expect(path.origin.requests).toHaveLength(1);
  });
});

const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n';

describe('an HTTP/1.0 client', () => {
  it('gets its own connection to the upstream, and its close as the end of the response', async () => {
    await using path = await createDataPath();
    const warm = await ask(path);
    await warm.readResponse();
    const client = await ask(path, 'GET /old HTTP/1.0', 'Connection: keep-alive');
    const all = await client.readToEnd();
    expect(all).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: close\r\n/);
    expect(path.origin.connections).toBe(2);
    expect(path.origin.requests[1]?.headers).toContainEqual(['Connection', 'close']);
    expect(path.origin.requests[1]?.version).toBe('HTTP/1.1');
  });

  it.each([
    [
      'at once',
      (send: (text: string) => Promise<void>) =>
        send(`${chunkedHead}2\r\nok\r\n1\r\n!\r\n0\r\nX-Trailer: c\r\n\r\n`),
    ],
    [
      'in pieces',
      async (send: (text: string) => Promise<void>) => {
        for (const piece of [chunkedHead, '2\r\no', 'k\r\n1\r', '\n!\r\n0\r\n\r\n']) await send(piece);
      },
    ],
  ])('cannot read chunks, so it gets their data, ended by the close (%s)', async (_, respond) => {
    await using path = await createDataPath({ respond: ({ send }) => respond(send) });
    const client = await ask(path, 'GET / HTTP/1.0');
    expect(await client.readToEnd()).toBe('HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\nok!');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200 });
  });

  it('sees that chunks were cut off', async () => {
    await using path = await createDataPath({
      isClear: true,
      respond: ({ send, end }) => send(`${chunkedHead}5\r\nhel`).then(end),
    });
    const client = await path.plain();
    await client.send(`GET http://plain.test:${path.origin.port}/ HTTP/1.0\r\n\r\n`);
    expect(await client.finished).toBe('ECONNRESET');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'upstream_truncated' });
  });
});

describe('an upstream that closes without a response', () => {
  /** Responds to the first request of each connection and closes at the second. */
  async function closingAtSecond(): Promise<DataPath> {
    const seen = new Map<number, number>();
    return createDataPath({
      respond: async ({ request, send, end, readBody }) => {
        const uses = (seen.get(request.connection) ?? 0) + 1;
        seen.set(request.connection, uses);
        if (uses > 1) return end();
        await readBody();
        await send(empty);
      },
    });
  }

  it('on a reused connection: an idempotent request is retried once, on a new one', async () => {
    await using path = await closingAtSecond();
    const client = await ask(path);
    expect((await client.readHead()).status).toBe(200);
    await client.send(head('PUT /again HTTP/1.1', `Host: ${path.authority}`, 'Content-Length: 0'));
    expect((await client.readHead()).status).toBe(200);
    expect(path.origin.requests.map(({ target, connection }) => [target, connection])).toEqual([
      ['/', 0],
      ['/again', 0],
      ['/again', 1],
    ]);
    expect(path.proxy.records()).toHaveLength(2);
    expect(await path.proxy.record(1)).toMatchObject({
      outcome: 'injected',
      status: 200,
      upstream_reused: false,
    });
  });

  it.each([
    ['POST', ['Content-Length: 0'], ''],
    ['PUT', ['Content-Length: 5'], 'hello'],
    ['PATCH', [], ''],
  ])(
    'on a reused connection: %s %j is not repeated, and the client sees a close',
    async (method, fields, body) => {
      await using path = await closingAtSecond();
      const client = await ask(path);
      await client.readHead();
      await client.send(head(`${method} /once HTTP/1.1`, `Host: ${path.authority}`, ...fields) + body);
      expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
      expect(client.transcript).toBe(empty);
      expect(path.origin.requests.map(({ target }) => target)).toEqual(['/', '/once']);
      expect(await path.proxy.record(1)).toMatchObject({ outcome: 'failed', reason: 'upstream_closed' });
    },
  );

  it('on a reused connection: the first request of a client gets a 502 if it is not idempotent', async () => {
    await using path = await closingAtSecond();
    const warm = await ask(path);
    await warm.readHead();
    const client = await ask(path, 'POST /once HTTP/1.1', 'Content-Length: 0');
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([502, 'upstream_closed']);
    expect(path.origin.requests).toHaveLength(2);
  });

  it('on a new connection: no retry', async () => {
    await using path = await createDataPath({ respond: ({ end }) => end() });
    const client = await ask(path);
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([502, 'upstream_closed']);
    expect(path.origin.requests).toHaveLength(1);
  });

  it('twice in a row: no second retry', async () => {
    let requests = 0;
    await using path = await createDataPath({
      respond: ({ send, end }) => ((requests += 1) === 1 ? send(empty) : end()),
    });
    const client = await ask(path);
    await client.readHead();
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    await client.finished;
    expect(requests).toBe(3);
    expect(path.proxy.records()).toHaveLength(2);
  });

  it('after half a head: no retry', async () => {
    let requests = 0;
    await using path = await createDataPath({
      respond: async ({ send, end }) => {
        await send((requests += 1) === 1 ? empty : 'HTTP/1.1 2');
        if (requests > 1) end();
      },
    });
    const client = await ask(path);
    await client.readHead();
    await client.send(head('GET /2 HTTP/1.1', `Host: ${path.authority}`));
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response), requests]).toEqual([502, 'upstream_closed', 2]);
  });
});

describe('a refusal after a body that paused its client', () => {
  it('does not leave the connection paused for the next request', async () => {
    await using path = await createDataPath({
      proxyConfig: {
        callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:9/none', ttl_seconds: 60 }],
      },
    });
    const client = await path.tunnel();
    const size = 200_000;
    for (let i = 0; i < 2; i += 1) {
      await client.send(head('POST / HTTP/1.1', `Host: ${path.authority}`, `Content-Length: ${size}`));
      await client.send(Buffer.alloc(size, 'x'));
      const { head: response } = await client.readResponse();
      expect([response.status, errorOf(response)]).toEqual([502, 'callback_failed']);
      if (response.headers.some(([name, value]) => name === 'Connection' && value === 'close')) return;
    }
  });
});

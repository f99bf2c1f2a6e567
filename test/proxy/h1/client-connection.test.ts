// A client's connection: sequential and pipelined requests, the limit of bytes sent ahead, idle timeouts, and what happens
// when the client leaves.
import { describe, expect, it } from 'vitest';
import type { Exchange } from '../../support/recording-origin.ts';
import { createDataPath, errorOf, head, secret } from '../data-path.ts';

const numbered = async ({ request, send, readBody }: Exchange): Promise<void> => {
  await readBody();
  await send(`HTTP/1.1 200 OK\r\nX-Target: ${request.target}\r\nContent-Length: 0\r\n\r\n`);
};

function targetOf(response: {
  readonly headers: readonly (readonly [string, string])[];
}): string | undefined {
  return response.headers.find(([name]) => name === 'X-Target')?.[1];
}

describe('requests that come all at once', () => {
  it('get their responses in order, with one upstream request each, serially', async () => {
    let running = 0;
    let most = 0;
    await using path = await createDataPath({
      respond: async (exchange) => {
        running += 1;
        most = Math.max(most, running);
        await numbered(exchange);
        running -= 1;
      },
    });
    const client = await path.tunnel();
    const count = 100;
    const one = (i: number): string => head(`GET /${i} HTTP/1.1`, `Host: ${path.authority}`);
    await client.send(Array.from({ length: count }, (_, i) => one(i)).join(''));
    for (let i = 0; i < count; i += 1) expect(targetOf(await client.readHead())).toBe(`/${i}`);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(
      Array.from({ length: count }, (_, i) => `/${i}`),
    );
    expect([most, path.origin.connections]).toEqual([1, 1]);
    expect(path.proxy.records()).toHaveLength(count);
  });

  it('with bodies between them are cut where each ends', async () => {
    await using path = await createDataPath({ respond: numbered });
    const client = await path.tunnel();
    const at = `Host: ${path.authority}`;
    await client.send(
      `${head('POST /1 HTTP/1.1', at, 'Content-Length: 3')}abc` +
        `${head('POST /2 HTTP/1.1', at, 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n` +
        `\r\n${head('GET /3 HTTP/1.1', at)}`,
    );
    for (const target of ['/1', '/2', '/3']) expect(targetOf(await client.readHead())).toBe(target);
  });

  it('get responses up to the first invalid one: then the connection is closed', async () => {
    await using path = await createDataPath({ respond: numbered });
    const client = await path.tunnel();
    const at = `Host: ${path.authority}`;
    await client.send(
      head('GET /1 HTTP/1.1', at) + head('GET /2 HTTP/1.1', 'Host: evil.test') + head('GET /3 HTTP/1.1', at),
    );
    expect(targetOf(await client.readHead())).toBe('/1');
    expect((await client.readResponse()).head.status).toBe(421);
    expect(await client.readToEnd()).toBe('');
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/1']);
  });

  it('and are all refused at once get all their responses', async () => {
    await using path = await createDataPath({
      isClear: true,
      proxyConfig: { access_control: { deny_list: ['denied.test'] } },
    });
    const client = await path.plain();
    const one = head('GET http://denied.test/ HTTP/1.1', 'Host: denied.test');
    const count = Math.floor(16_384 / one.length);
    await client.send(one.repeat(count));
    for (let i = 0; i < count; i += 1)
      expect(errorOf((await client.readResponse()).head)).toBe('access_denied');
    await client.send(one);
    expect(errorOf((await client.readResponse()).head)).toBe('access_denied');
  });

  it('beyond 16 KiB ahead close the connection after the running response, and none of them is forwarded', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async (exchange) => {
        await gate.promise;
        await numbered(exchange);
      },
    });
    const client = await path.tunnel();
    const ahead = head('GET /ahead HTTP/1.1', `Host: ${path.authority}`, `X: ${'a'.repeat(1_000)}`);
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    await path.origin.request(0);
    await client.send(ahead.repeat(20));
    gate.resolve();
    expect(targetOf(await client.readHead())).toBe('/1');
    expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/1']);
  });

  it('within 16 KiB ahead all get a response', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async (exchange) => {
        await gate.promise;
        await numbered(exchange);
      },
    });
    const client = await path.tunnel();
    const ahead = head('GET /ahead HTTP/1.1', `Host: ${path.authority}`, `X: ${'a'.repeat(1_000)}`);
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    await path.origin.request(0);
    const count = Math.floor(16_384 / ahead.length);
    await client.send(ahead.repeat(count));
    gate.resolve();
    for (let i = 0; i <= count; i += 1)
      expect(targetOf(await client.readHead())).toBe(i === 0 ? '/1' : '/ahead');
  });
});

describe('a head', () => {
  it('that comes byte by byte is the same head', async () => {
    await using path = await createDataPath({ respond: numbered });
    const client = await path.tunnel();
    for (const byte of head('GET /slow HTTP/1.1', `Host: ${path.authority}`)) await client.send(byte);
    expect(targetOf(await client.readHead())).toBe('/slow');
  });

  it('that stays incomplete is a 408', async () => {
    await using path = await createDataPath({ config: { timeouts: { head_ms: 30 } } });
    const client = await path.plain();
    await client.send('GET http://a.test/ HTTP/1.1\r\nHost:');
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([408, 'request_timeout']);
    expect(await client.readToEnd()).toBe('');
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'request_timeout', cause: 'head' });
  });

  it('that is incomplete when its client leaves is no request', async () => {
    await using path = await createDataPath();
    const client = await path.plain();
    await client.send('GET http://a.test/ HTTP/1.1\r\nHost:');
    client.end();
    expect(await client.readToEnd()).toBe('');
    expect(path.proxy.records()).toEqual([]);
  });
});

describe('a silent client', () => {
  it('between two requests is closed without a response', async () => {
    await using path = await createDataPath({
      config: { timeouts: { client_idle_ms: 50 } },
      respond: numbered,
    });
    const client = await path.tunnel();
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    await client.readHead();
    expect(await client.finished).toMatch(/^(end|ECONNRESET)$/);
    expect(path.proxy.records()).toHaveLength(1);
  });

  it('that waits for a slow response is not idle', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      config: { timeouts: { client_idle_ms: 20, response_idle_ms: 400 } },
      respond: () => gate.promise,
    });
    const client = await path.tunnel();
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    // The timeout of the upstream is later than that of the client, and it is the one that applies.
    expect((await client.readHead()).status).toBe(504);
    gate.resolve();
  });

  it('that does not read its response is closed, and so is its upstream', async () => {
    const left = Promise.withResolvers<unknown>();
    await using path = await createDataPath({
      config: { timeouts: { client_idle_ms: 100 } },
      respond: async ({ send, reader }) => {
        await send('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n');
        const chunk = Buffer.alloc(1 << 20);
        reader.finished.then(left.resolve, left.resolve);
        for (let i = 0; i < 1_000; i += 1) await send(chunk);
      },
    });
    const client = await path.tunnel();
    client.socket.pause();
    await client.send(head('GET /1 HTTP/1.1', `Host: ${path.authority}`));
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_stalled' });
    await left.promise;
  });
});

describe('a client that leaves in the middle', () => {
  it.each([
    ['while the host thinks, by FIN', '/think', 'fin'],
    ['while the host thinks, by RST', '/think', 'rst'],
    ['while the response comes, by FIN', '/response', 'fin'],
    ['while the response comes, by RST', '/response', 'rst'],
  ])('%s: its upstream connection is closed, and one record says so', async (_, target, by) => {
    const left = Promise.withResolvers<unknown>();
    await using path = await createDataPath({
      respond: async ({ request, send, reader }) => {
        if (request.target === '/response') await send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf.');
        left.resolve(await reader.finished);
      },
    });
    const client = await path.tunnel();
    await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
    await path.origin.request(0);
    if (target === '/response') await client.readThrough('half.');
    if (by === 'fin') client.end();
    else client.reset();
    await left.promise;
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
    expect(path.proxy.records()).toHaveLength(1);
  });

  it('while a callback runs: nothing is sent to the upstream', async () => {
    const asked = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    await using origin = await createDataPath({
      isClear: true,
      respond: async ({ send }) => {
        asked.resolve();
        await gate.promise;
        await send('HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"headers":{}}');
      },
    });
    await using path = await createDataPath({
      proxyConfig: {
        callbacks: [
          { match_hosts: ['api.test'], url: `http://127.0.0.1:${origin.origin.port}/`, ttl_seconds: 60 },
        ],
      },
    });
    const client = await path.tunnel();
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    await asked.promise;
    client.reset();
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
    gate.resolve();
    const next = await path.tunnel();
    await next.send(head('GET /next HTTP/1.1', `Host: ${path.authority}`));
    expect((await next.readResponse()).head.status).toBe(200);
    expect(path.origin.requests.map(({ target }) => target)).toEqual(['/next']);
  });
});

describe('a change of the policy', () => {
  it('holds for the next request of an open tunnel, on a fresh connection', async () => {
    await using path = await createDataPath({ respond: numbered });
    const client = await path.tunnel();
    const ask = async (target: string): Promise<readonly (readonly [string, string])[]> => {
      await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
      await client.readHead();
      return path.origin.requests.at(-1)?.headers ?? [];
    };
    expect(await ask('/1')).toContainEqual(['Authorization', `Bearer ${secret}`]);
    path.proxy.apply({
      rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'two' }] }],
    });
    expect(await ask('/2')).toEqual([
      ['Host', path.authority],
      ['X-Key', 'two'],
    ]);
    path.proxy.apply({ access_control: { deny_list: ['api.test'] } });
    await client.send(head('GET /3 HTTP/1.1', `Host: ${path.authority}`));
    expect(errorOf((await client.readResponse()).head)).toBe('access_denied');
    expect(path.origin.requests.map(({ target, connection }) => [target, connection])).toEqual([
      ['/1', 0],
      ['/2', 1],
    ]);
    expect((await path.proxy.record(2))['revision']).toBe(3);
  });
});

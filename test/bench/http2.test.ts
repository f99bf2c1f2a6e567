// The HTTP/2 implementation of the benchmark, against node:http2: both sides understand each other, and a wrong response is
// an error.
import { once } from 'node:events';
import {
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  connect,
  createSecureServer,
  sensitiveHeaders,
} from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openH2Connection } from '../../bench/support/h2-connection.ts';
import { serveH2 } from '../../bench/support/h2-origin.ts';
import type { Field } from '../../bench/support/hpack.ts';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';

const request =
  'GET /v1/models?limit=20 HTTP/1.1\r\nHost: api.localhost:1\r\nAccept: */*\r\nX-Trace: 4bf92f35\r\n\r\n';
const ended: (() => void)[] = [];
afterEach(() => ended.splice(0).forEach((end) => end()));

describe('the client', () => {
  type Settings = { readonly headerTableSize?: number };

  async function startServer(
    settings: Settings,
    response: (headers: IncomingHttpHeaders) => { status: number; length: number },
  ): Promise<{ seen: IncomingHttpHeaders[]; open: ReturnType<typeof opener> }> {
    const ca = createCertificateAuthority();
    const { chainPem, keyPem } = ca.issueLeaf({ host: 'api.localhost', kind: 'name' }, new Date());
    const server = createSecureServer({ cert: chainPem, key: keyPem, settings });
    const seen: IncomingHttpHeaders[] = [];
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      seen.push(headers);
      const { status, length } = response(headers);
      stream.respond({ ':status': status, 'content-length': length });
      stream.end('response');
    });
    server.on('sessionError', () => undefined);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ended.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    return {
      seen,
      open: opener({ port, host: 'api.localhost', caPem: ca.certificatePem, heads: [request] }),
    };
  }

  function opener(target: Parameters<typeof openH2Connection>[0]) {
    return async (streams: number) => {
      const error = Promise.withResolvers<never>();
      error.promise.catch(() => undefined);
      const connection = await openH2Connection(target, streams, error.reject);
      ended.push(connection.close);
      const ask = (): Promise<unknown> => {
        const responses = connection.lines.map((line) => new Promise<void>((done) => line.exchange(done)));
        return Promise.race([Promise.all(responses), error.promise]);
      };
      return { suite: connection.suite, ask };
    };
  }

  it.each([
    ['with a table of fields', {}],
    ['without one', { headerTableSize: 0 }],
  ])('sends the same request repeatedly, %s', async (_, settings) => {
    const { seen, open } = await startServer(settings, () => ({ status: 200, length: 8 }));
    const { ask, suite } = await open(8);
    for (let i = 0; i < 3; i += 1) await ask();
    expect(suite).toContain('TLSv1.3');
    expect(seen).toHaveLength(24);
    for (const headers of seen)
      expect(Object.fromEntries(Object.entries(headers))).toEqual({
        ':method': 'GET',
        ':scheme': 'https',
        ':authority': 'api.localhost:1',
        ':path': '/v1/models?limit=20',
        accept: '*/*',
        'x-trace': '4bf92f35',
      });
  });

  it('rejects any other status, at first or later', async () => {
    let count = 0;
    const { open } = await startServer({}, () => ({ status: (count += 1) > 2 ? 500 : 200, length: 8 }));
    const { ask } = await open(1);
    await ask();
    await ask();
    await expect(ask()).rejects.toThrow(':status: 500');
  });

  it('rejects a response that is shorter than its Content-Length', async () => {
    const { open } = await startServer({}, () => ({ status: 200, length: 9 }));
    const { ask } = await open(2);
    await expect(ask()).rejects.toThrow();
  });
});

describe('the origin', () => {
  const fields: readonly Field[] = [
    [':status', '200'],
    ['content-length', '300'],
    ['x-request-id', '0123456789'],
  ];
  const body = 'x'.repeat(300);

  async function startOrigin(judge: (request: readonly Field[]) => string | undefined) {
    const counts = { responses: 0 };
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      serveH2(socket, { fields, body }, judge, () => (counts.responses += 1));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    ended.push(
      () => session.destroy(),
      () => server.close(),
    );
    const ask = async (headers: Readonly<Record<string, string>>): Promise<string> => {
      const stream = session.request({
        ':method': 'GET',
        ':path': '/v1/a',
        [sensitiveHeaders]: ['authorization'],
        ...headers,
      });
      const response = once(stream, 'response');
      let text = '';
      for await (const chunk of stream) text += String(chunk);
      const [head] = (await response) as [IncomingHttpHeaders & { ':status': number }];
      return `${head[':status']} ${head['x-request-id'] ?? ''} ${text}`;
    };
    return { ask, counts };
  }

  it('decodes every printable character, new fields and known ones', async () => {
    const seen: (readonly Field[])[] = [];
    const { ask } = await startOrigin((request) => void seen.push(request));
    const printable = String.fromCharCode(...Array.from({ length: 95 }, (_, i) => i + 32)).replace('\\', '');
    const values = [...printable].map((each) => `a${each}b`.repeat(3));
    for (const value of [...values, printable.trim(), ...values]) {
      await ask({ 'x-value': value });
      expect(Object.fromEntries(seen.at(-1) ?? [])).toMatchObject({ ':path': '/v1/a', 'x-value': value });
    }
  });

  it('sends more than the window of a connection, and checks identical requests once', async () => {
    let asked = 0;
    const { ask, counts } = await startOrigin(() => void (asked += 1));
    const all = Array.from({ length: 1000 }, () => ask({ authorization: 'Bearer of-some-length-123' }));
    expect(new Set(await Promise.all(all))).toEqual(new Set([`200 0123456789 ${body}`]));
    expect(counts.responses).toBe(1000);
    expect(asked).toBeLessThan(10);
  });

  it('reports what is wrong, between correct responses', async () => {
    const { ask, counts } = await startOrigin((request) =>
      request.some(([name, value]) => name === 'x-value' && value === 'wrong') ? 'an error' : undefined,
    );
    expect(await ask({ 'x-value': 'right' })).toContain('200 0123456789');
    expect(await ask({ 'x-value': 'wrong' })).toBe('500  an error');
    expect(await ask({ 'x-value': 'right' })).toContain('200 0123456789');
    expect(counts.responses).toBe(2);
  });
});

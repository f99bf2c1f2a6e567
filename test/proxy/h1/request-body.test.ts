// Request framing on the wire: ambiguous framing is refused before any byte of it reaches an upstream, valid framing
// arrives in one canonical form, and a truncated body is never a complete one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WireClient } from '../../support/wire-client.ts';
import { type DataPath, createDataPath, errorOf, head, secret } from '../data-path.ts';

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

/** The proxy port and intercepted tunnels use the same code, and must go on doing so. */
const entries = [
  [
    'in a tunnel',
    (path: DataPath): Promise<WireClient> => path.tunnel(),
    (path: DataPath) => ['', path.authority],
  ],
  [
    'on the proxy port',
    (path: DataPath): Promise<WireClient> => path.plain(),
    (path: DataPath) => [`http://plain.test:${path.origin.port}`, `plain.test:${path.origin.port}`],
  ],
] as const;

for (const [where, open, names] of entries) {
  describe(`${where}, ambiguous framing`, () => {
    let path: DataPath;
    beforeAll(async () => {
      path = await createDataPath({ isClear: where !== 'in a tunnel' });
    });
    afterAll(() => path[Symbol.asyncDispose]());

    const rows: readonly (readonly [string, string, readonly string[], string, number])[] = [
      [
        'CL.TE',
        'POST / HTTP/1.1',
        ['Content-Length: 5', 'Transfer-Encoding: chunked'],
        `0\r\n\r\n${smuggled}`,
        400,
      ],
      [
        'TE.CL',
        'POST / HTTP/1.1',
        ['Transfer-Encoding: chunked', 'Content-Length: 5'],
        `0\r\n\r\n${smuggled}`,
        400,
      ],
      [
        'two lengths that differ',
        'POST / HTTP/1.1',
        ['Content-Length: 3', 'Content-Length: 40'],
        smuggled,
        400,
      ],
      ['two lengths that agree', 'POST / HTTP/1.1', ['Content-Length: 3', 'Content-Length: 3'], 'abc', 400],
      ['a list of lengths', 'POST / HTTP/1.1', ['Content-Length: 3, 3'], 'abc', 400],
      ['a signed length', 'POST / HTTP/1.1', ['Content-Length: +3'], 'abc', 400],
      ['a negative length', 'POST / HTTP/1.1', ['Content-Length: -1'], '', 400],
      ['a length in hexadecimal', 'POST / HTTP/1.1', ['Content-Length: 0x3'], 'abc', 400],
      ['a length with a leading zero', 'POST / HTTP/1.1', ['Content-Length: 03'], 'abc', 400],
      ['a length with an underscore', 'POST / HTTP/1.1', ['Content-Length: 1_0'], 'abc', 400],
      ['an empty length', 'POST / HTTP/1.1', ['Content-Length:'], '', 400],
      ['a length beyond 2^53', 'POST / HTTP/1.1', ['Content-Length: 18446744073709551617'], '', 400],
      ['a tab beside the length', 'POST / HTTP/1.1', ['Content-Length:\t3'], 'abc', 400],
      ['xchunked', 'POST / HTTP/1.1', ['Transfer-Encoding: xchunked'], '0\r\n\r\n', 501],
      ['chunked, identity', 'POST / HTTP/1.1', ['Transfer-Encoding: chunked, identity'], '0\r\n\r\n', 501],
      ['gzip, chunked', 'POST / HTTP/1.1', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n', 501],
      ['a comma before chunked', 'POST / HTTP/1.1', ['Transfer-Encoding: ,chunked'], '0\r\n\r\n', 501],
      ['a comma behind chunked', 'POST / HTTP/1.1', ['Transfer-Encoding: chunked,'], '0\r\n\r\n', 501],
      [
        'chunked twice',
        'POST / HTTP/1.1',
        ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
        '0\r\n\r\n',
        400,
      ],
      [
        'a vertical tab before chunked',
        'POST / HTTP/1.1',
        ['Transfer-Encoding: \x0bchunked'],
        '0\r\n\r\n',
        400,
      ],
      ['chunked on HTTP/1.0', 'POST / HTTP/1.0', ['Transfer-Encoding: chunked'], '0\r\n\r\n', 400],
      [
        'an underscore in Transfer_Encoding',
        'POST / HTTP/1.1',
        ['Transfer_Encoding: chunked', 'Content-Length: 5'],
        '0\r\n\r\n',
        400,
      ],
      ['a space before the colon', 'POST / HTTP/1.1', ['Content-Length : 5'], 'abcde', 400],
      ['a folded coding', 'POST / HTTP/1.1', ['Transfer-Encoding:\r\n chunked'], '0\r\n\r\n', 400],
      ['a line that begins with a space', 'POST / HTTP/1.1', [' Content-Length: 5'], 'abcde', 400],
      ['a bare LF between fields', 'POST / HTTP/1.1', ['X: a\nContent-Length: 5'], 'abcde', 400],
      ['a bare CR in a value', 'POST / HTTP/1.1', ['X: a\rContent-Length: 5'], 'abcde', 400],
      ['a NUL in a value', 'POST / HTTP/1.1', ['X: a\0b'], '', 400],
      ['no colon', 'POST / HTTP/1.1', ['Content-Length 5'], 'abcde', 400],
      [
        'Connection that names the length',
        'POST / HTTP/1.1',
        ['Content-Length: 5', 'Connection: content-length'],
        'abcde',
        400,
      ],
      [
        'Connection that names the coding',
        'POST / HTTP/1.1',
        ['Transfer-Encoding: chunked', 'Connection: transfer-encoding'],
        '0\r\n\r\n',
        400,
      ],
    ];
    it.each(rows)(
      '%s is refused, the connection closes, no byte reaches the host',
      async (_, line, fields, body, status) => {
        const [prefix = '', host] = names(path);
        const records = path.proxy.records().length;
        const client = await open(path);
        await client.send(
          head(line.replace(' /', ` ${prefix}/`), `Host: ${host}`, ...fields) + body + smuggled,
        );
        const all = await client.readToEnd();
        expect(all).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(all.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
        expect(all).toContain('\r\nConnection: close\r\n');
        expect(path.origin.connections).toBe(0);
        expect(await path.proxy.record(records)).toMatchObject({ outcome: 'refused', status });
      },
    );
  });
}

describe('a body', () => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ['with a length', 'Content-Length: 5', 'hello', 'hello'],
    ['of GET, with a length', 'Content-Length: 5', 'hello', 'hello'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    [
      'in chunks with capital sizes',
      'Transfer-Encoding: Chunked',
      `A\r\n0123456789\r\n0\r\n\r\n`,
      `A\r\n0123456789\r\n0\r\n\r\n`,
    ],
    [
      'in chunks with trailers',
      'Transfer-Encoding: chunked',
      '1\r\na\r\n0\r\nX-T: 1\r\nAuthorization: Bearer agent\r\n\r\n',
      '1\r\na\r\n0\r\n\r\n',
    ],
    ['that looks like a request', 'Content-Length: 36', smuggled, smuggled],
  ];
  it.each(rows)(
    '%s arrives whole and in canonical form, and the next request follows it',
    async (why, field, sent, arrived) => {
      await using path = await createDataPath();
      const client = await path.tunnel();
      const method = why.startsWith('of GET') ? 'GET' : 'POST';
      const first = head(
        `${method} /1 HTTP/1.1`,
        `Host: ${path.authority}`,
        field.replace('36', String(smuggled.length)),
      );
      const second = head('GET /2 HTTP/1.1', `Host: ${path.authority}`);
      await client.send(first + sent + second);
      expect([(await client.readResponse()).head.status, (await client.readResponse()).head.status]).toEqual([
        200, 200,
      ]);
      expect(path.origin.requests.map(({ target }) => target)).toEqual(['/1', '/2']);
      const transcript = path.origin.transcripts.join('');
      const injected = `Authorization: Bearer ${secret}\r\n\r\n`;
      expect(transcript).toBe(first.replace(/\r\n$/, injected) + arrived + second.replace(/\r\n$/, injected));
    },
  );

  it('sent byte by byte arrives the same', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    const text = `${head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Transfer-Encoding: chunked')}B\r\nhello world\r\n0\r\nX: y\r\n\r\n`;
    for (const byte of text) await client.send(byte);
    expect((await client.readResponse()).head.status).toBe(200);
    expect(path.origin.requests[0]?.body).toMatchObject({ framing: 'chunked', length: 11 });
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\nb\r\nhello world\r\n0\r\n\r\n$/);
  });

  it('of 3 MiB is forwarded while its upstream reads slowly', async () => {
    const gate = Promise.withResolvers<void>();
    await using path = await createDataPath({
      respond: async ({ readBody, send }) => {
        await gate.promise;
        const { length } = await readBody();
        await send(`HTTP/1.1 200 OK\r\nX-Length: ${length}\r\nContent-Length: 0\r\n\r\n`);
      },
    });
    const client = await path.tunnel();
    const size = 3 << 20;
    await client.send(head('PUT / HTTP/1.1', `Host: ${path.authority}`, `Content-Length: ${size}`));
    const sent = client.send(Buffer.alloc(size, 'x'));
    await path.origin.request(0);
    gate.resolve();
    await sent;
    expect((await client.readResponse()).head.headers).toContainEqual(['X-Length', String(size)]);
    await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await client.readResponse()).head.status).toBe(200);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200 });
  });
});

describe('a chunked body that turns out to be invalid', () => {
  it.each([
    ['a size that is no number', 'zz\r\n'],
    ['a size with a prefix', '0x3\r\nabc\r\n'],
    ['a size with a sign', '+3\r\nabc\r\n'],
    ['a space behind the size', '3 \r\nabc\r\n'],
    ['a leading zero', '03\r\nabc\r\n'],
    ['a size of 17 digits', '10000000000000000\r\n'],
    ['an extension', '3;a=b\r\nabc\r\n'],
    ['an extension cut by LF', '3;a\nabc\r\n'],
    ['a bare LF behind the size', '3\nabc\r\n'],
    ['data longer than its size', '3\r\nabcd\r\n'],
    ['no CRLF behind the data', '3\r\nabcX'],
    ['framing among the trailers', '0\r\nContent-Length: 5\r\n\r\n'],
    ['trailers beyond 8 KiB', `0\r\nX: ${'a'.repeat(8_192)}\r\n\r\n`],
  ])('by %s is refused, and the upstream never gets its end', async (_, invalid) => {
    await using path = await createDataPath({
      // Reads on and on: what a host does that waits for the rest of a body.
      respond: ({ readBody }) => readBody().then(() => undefined),
    });
    const client = await path.tunnel();
    await client.send(head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Transfer-Encoding: chunked'));
    await client.send('5\r\nhello\r\n');
    await path.origin.request(0);
    await client.send(`${invalid}0\r\n\r\n${smuggled}`);
    const response = await client.readToEnd();
    expect(response).toMatch(/^HTTP\/1\.1 4(00|31) /);
    expect(response.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'refused', authority: path.authority });
    const [transcript = ''] = path.origin.transcripts;
    expect(transcript).toMatch(/\r\n\r\n5\r\nhello\r\n/);
    expect(transcript).not.toMatch(/0\r\n\r\n$|smuggled/);
    expect(path.origin.requests).toHaveLength(1);
  });

  it('before its head was sent reaches no host at all', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send(
      `${head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Transfer-Encoding: chunked')}zz\r\n`,
    );
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([400, 'malformed_request']);
    expect(path.origin.requests).toEqual([]);
  });
});

describe('a truncated body', () => {
  it.each([
    ['by FIN', (client: WireClient) => client.end()],
    ['by RST', (client: WireClient) => client.reset()],
  ])('%s closes the connection of its upstream, which never reads it as complete', async (_, leave) => {
    const left = Promise.withResolvers<unknown>();
    await using path = await createDataPath({
      respond: async ({ readBody, reader }) => {
        readBody().catch(() => undefined);
        left.resolve(await reader.finished);
      },
    });
    const client = await path.tunnel();
    await client.send(`${head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Content-Length: 10')}abc`);
    await path.origin.request(0);
    leave(client);
    await left.promise;
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
    expect(path.origin.transcripts[0]).toMatch(/\r\n\r\n(abc)?$/);
  });

  it('by silence is a 408, and its upstream connection is closed', async () => {
    const left = Promise.withResolvers<unknown>();
    await using path = await createDataPath({
      config: { timeouts: { client_idle_ms: 50 } },
      respond: async ({ readBody, reader }) => {
        readBody().catch(() => undefined);
        left.resolve(await reader.finished);
      },
    });
    const client = await path.tunnel();
    await client.send(`${head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Content-Length: 10')}abc`);
    const { head: response } = await client.readResponse();
    expect([response.status, errorOf(response)]).toEqual([408, 'request_timeout']);
    await left.promise;
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'request_timeout', cause: 'body' });
  });
});

// I2: one accepted request causes at most one upstream request, and no unframed byte is sent before a confirmed 101 or
// CONNECT. No origin must ever receive a request for `/smuggled`.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Exchange, createOrigin, response } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import type { WireClient } from '../support/wire-client.ts';
import { bearerRule, createScene, head, type Scene } from './credential-scene.ts';

const OK = response(200, [], 'ok');
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';

async function reply({ readBody, send }: Exchange): Promise<void> {
  await readBody();
  await send(OK);
}

function targetsAt(scene: Scene): readonly string[] {
  return scene.origin.requests.map(({ method, target }) => `${method} ${target}`);
}

/** Sends bytes; the connection may already be closed. */
async function trySend(client: WireClient, bytes: string): Promise<void> {
  await client.send(bytes).catch(() => undefined);
}

describe('I2 one-to-one: pipelined requests', () => {
  type Kind = (host: string, i: number) => string;
  const kinds: readonly Kind[] = [
    (host, i) => head(`GET /${i}`, host),
    (host, i) => head(`DELETE /${i}`, host, ['Content-Length: 0']),
    (host, i) => `${head(`POST /${i}`, host, [`Content-Length: ${SMUGGLED.length}`])}${SMUGGLED}`,
    (host, i) => `${head(`GET /${i}`, host, [`Content-Length: ${SMUGGLED.length}`])}${SMUGGLED}`,
    (host, i) => {
      const size = SMUGGLED.length.toString(16);
      return `${head(`DELETE /${i}`, host, ['Transfer-Encoding: chunked'])}${size}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
    },
    (host, i) =>
      `${head(`OPTIONS /${i}`, host, ['Transfer-Encoding: Chunked'])}1\r\nx\r\n0\r\nX-T: 1\r\n\r\n`,
  ];

  it('I2 one-to-one: each request arrives once and in order, with the bytes split in any way', async () => {
    await using scene = await createScene({ respond: reply });
    const sequence = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 6 });
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sequence, cuts, async (wanted, where) => {
        const before = scene.origin.requests.length;
        const messages = wanted.map((kind, i) => kind(scene.at(), i));
        const bytes = messages.join('');
        const ends = where.map((part) => Math.round(part * bytes.length)).toSorted((a, b) => a - b);
        await using client = await scene.tunnel();
        for (const [i, end] of [...ends, bytes.length].entries())
          await client.send(bytes.slice(ends[i - 1] ?? 0, end));
        for (const _ of messages) expect((await client.readResponse()).text).toBe('ok');
        const sent = messages.map((message) => message.slice(0, message.indexOf(' HTTP')));
        expect(targetsAt(scene).slice(before)).toEqual(sent);
      }),
      { numRuns: runs(40, 10) },
    );
  });

  it('I2 one-to-one: a body that looks like a request stays a body', async () => {
    await using scene = await createScene({ respond: reply });
    for (const [i, kind] of kinds.entries()) {
      await using client = await scene.tunnel();
      await client.send(kind(scene.at(), i));
      await client.readResponse();
    }
    expect(scene.origin.requests.map(({ body }) => body?.framing)).toEqual([
      'none',
      'length',
      'length',
      'length',
      'chunked',
      'chunked',
    ]);
    expect(scene.origin.requests.map(({ body }) => body?.content.toString())).toEqual([
      '',
      '',
      SMUGGLED,
      SMUGGLED,
      SMUGGLED,
      'x',
    ]);
    expect(scene.origin.transcripts.join('')).not.toContain('X-T');
  });
});

describe('I2 one-to-one: ambiguous framing', () => {
  const chunk = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;
  const rows: readonly (readonly [why: string, fields: readonly string[], body: string, status: number])[] = [
    ['length and coding', ['Content-Length: 5', 'Transfer-Encoding: chunked'], `0\r\n\r\n`, 400],
    ['coding and length', ['Transfer-Encoding: chunked', `Content-Length: ${chunk.length}`], chunk, 400],
    ['two lengths', ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`], '', 400],
    ['two equal lengths', ['Content-Length: 2', 'Content-Length: 2'], 'xx', 400],
    ['a list of lengths', ['Content-Length: 2, 2'], 'xx', 400],
    ['a length with a sign', ['Content-Length: +2'], 'xx', 400],
    ['a length with a zero before it', ['Content-Length: 02'], 'xx', 400],
    ['a hexadecimal length', ['Content-Length: 0x2'], 'xx', 400],
    ['two codings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunk, 400],
    ['a list of codings', ['Transfer-Encoding: gzip, chunked'], chunk, 501],
    ['a coding that is not the last', ['Transfer-Encoding: chunked, identity'], chunk, 501],
    ['an empty coding in the list', ['Transfer-Encoding: ,chunked'], chunk, 501],
    ['a coding with a vertical tab', ['Transfer-Encoding: \x0bchunked'], chunk, 400],
    ['a coding with an underscore', ['Transfer_Encoding: chunked', 'Content-Length: 0'], '', 400],
    ['a length with an underscore', [`Content_Length: ${SMUGGLED.length}`], '', 400],
    ['whitespace before the colon', ['Transfer-Encoding : chunked'], chunk, 400],
    ['a folded line', ['X-A: 1', ' Transfer-Encoding: chunked'], chunk, 400],
    ['a bare LF in the head', ['X-A: 1\nTransfer-Encoding: chunked'], chunk, 400],
    ['a bare CR in the head', ['X-A: 1\rTransfer-Encoding: chunked'], chunk, 400],
    ['a NUL in the head', ['X-A: \0', 'Transfer-Encoding: chunked'], chunk, 400],
    [
      'a framing field nominated by Connection',
      ['Connection: content-length', 'Content-Length: 2'],
      'xx',
      400,
    ],
    ['Expect twice', ['Expect: 100-continue', 'Expect: 100-continue', 'Content-Length: 2'], 'xx', 417],
    ['another Expect', ['Expect: 100-continue, x', 'Content-Length: 2'], 'xx', 417],
    ['a chunk extension', ['Transfer-Encoding: chunked'], `2;x=y\r\nxx\r\n0\r\n\r\n`, 400],
    ['a chunk extension up to a bare LF', ['Transfer-Encoding: chunked'], `2;\nxx\r\n0\r\n\r\n`, 400],
    ['a chunk size up to a bare LF', ['Transfer-Encoding: chunked'], '2\nxx\r\n0\r\n\r\n', 400],
    ['a chunk size with 0x', ['Transfer-Encoding: chunked'], '0x2\r\nxx\r\n0\r\n\r\n', 400],
    ['a chunk size with a zero before it', ['Transfer-Encoding: chunked'], '02\r\nxx\r\n0\r\n\r\n', 400],
    [
      'a chunk size that overflows',
      ['Transfer-Encoding: chunked'],
      '10000000000000002\r\nxx\r\n0\r\n\r\n',
      400,
    ],
    ['chunk data longer than its size', ['Transfer-Encoding: chunked'], '2\r\nxxx\r\n0\r\n\r\n', 400],
    ['chunk data that ends in LF', ['Transfer-Encoding: chunked'], '2\r\nxx\n0\r\n\r\n', 400],
    ['framing in a trailer', ['Transfer-Encoding: chunked'], '0\r\nContent-Length: 9\r\n\r\n', 400],
  ];
  it.each(rows)(
    'I2 one-to-one: %s is rejected, and nothing is sent upstream',
    async (_, fields, body, status) => {
      await using scene = await createScene({ respond: reply });
      await using client = await scene.tunnel();
      await client.send(`${head('POST /', scene.at(), fields)}${body}${SMUGGLED}`);
      expect((await client.readResponse()).head.status).toBe(status);
      expect(await client.readToEnd()).toBe('');
      expect(scene.origin.transcripts.join('')).toBe('');
    },
  );

  const late = rows.filter(([, fields]) => fields.length === 1 && fields[0] === 'Transfer-Encoding: chunked');
  it.each(late)('I2 one-to-one: after the head was sent, nothing follows %s', async (_, fields, body) => {
    await using scene = await createScene({ respond: reply });
    await using client = await scene.tunnel();
    await client.send(head('POST /', scene.at(), fields));
    await scene.origin.request(0);
    await trySend(client, `${body}${SMUGGLED}`);
    expect((await client.readResponse()).head.status).toBe(400);
    expect(await client.readToEnd()).toBe('');
    expect(scene.origin.transcripts.join('')).not.toContain('smuggled');
    expect(scene.origin.requests).toMatchObject([{ body: undefined }]);
  });

  const lines: readonly (readonly [why: string, bytes: (host: string) => string, status: number])[] = [
    [
      'a coding on HTTP/1.0',
      (h) => `POST / HTTP/1.0\r\nHost: ${h}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
      400,
    ],
    ['HTTP/0.9', () => `GET /\r\n\r\n`, 400],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    ['another version', (h) => `GET / HTTP/2.0\r\nHost: ${h}\r\n\r\n`, 505],
    ['an upgrade with a body', (h) => head('GET /', h, [...upgrade, 'Content-Length: 1']), 400],
    ['TRACE', (h) => head('TRACE /', h), 405],
  ];
  it.each(lines)('I2 one-to-one: %s is rejected, and nothing is sent upstream', async (_, bytes, status) => {
    await using scene = await createScene({ respond: reply });
    await using client = await scene.tunnel();
    await client.send(`${bytes(scene.at())}${SMUGGLED}`);
    expect((await client.readResponse()).head.status).toBe(status);
    expect(await client.readToEnd()).toBe('');
    expect(scene.origin.transcripts.join('')).toBe('');
  });
});

const upgrade = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: eA==',
];

describe('I2 one-to-one: a dead pooled connection', () => {
  type Row = readonly [
    request: string,
    fields: readonly string[],
    body: string,
    arrivals: number,
    status: number,
  ];
  const rows: readonly Row[] = [
    ['GET /', [], '', 2, 200],
    ['HEAD /', [], '', 2, 200],
    ['DELETE /', [], '', 2, 200],
    ['POST /', [], '', 1, 502],
    ['PATCH /', [], '', 1, 502],
    ['CUSTOM /', [], '', 1, 502],
    ['PUT /', ['Content-Length: 1'], 'x', 1, 502],
    ['GET /', ['Transfer-Encoding: chunked'], '0\r\n\r\n', 1, 502],
  ];
  const deaths = [
    ['FIN', ({ end }: Exchange) => end()],
    ['RST', ({ reset }: Exchange) => reset()],
  ] as const;
  const cases = rows.flatMap((row) => deaths.map(([name, die]) => [...row, name, die] as const));
  it.each(cases)('I2 one-to-one: %s %j %j arrives %i times and gets status %i after %s', async (...row) => {
    const [request, fields, body, arrivals, status, , die] = row;
    await using scene = await createScene({
      respond: async (exchange) => {
        const isDying = exchange.request.connection === 0 && exchange.request.target !== '/warm';
        return isDying
          ? die(exchange)
          : exchange.request.method === 'HEAD'
            ? exchange.send('HTTP/1.1 200 OK\r\n\r\n')
            : reply(exchange);
      },
    });
    await using first = await scene.tunnel();
    await first.send(head('GET /warm', scene.at()));
    await first.readResponse();
    await using client = await scene.tunnel();
    await client.send(`${head(request, scene.at(), fields)}${body}`);
    expect((await client.readHead()).status).toBe(status);
    expect(targetsAt(scene).slice(1)).toEqual(Array.from({ length: arrivals }, () => request));
  });

  it('I2 one-to-one: a request is not sent a third time', async () => {
    await using scene = await createScene({
      respond: (exchange) => (exchange.request.target === '/warm' ? reply(exchange) : exchange.end()),
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /warm', scene.at()));
    await client.readResponse();
    await client.send(head('GET /', scene.at()));
    await client.finished;
    expect(targetsAt(scene)).toEqual(['GET /warm', 'GET /', 'GET /']);
  });

  it('I2 one-to-one: a request is not sent again once its response has begun', async () => {
    await using scene = await createScene({
      async respond(exchange) {
        if (exchange.request.target === '/warm') return reply(exchange);
        await exchange.send('HTTP/1.1 2');
        exchange.end();
      },
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /warm', scene.at()));
    await client.readResponse();
    await client.send(head('GET /', scene.at()));
    expect((await client.readResponse()).head.status).toBe(502);
    expect(targetsAt(scene)).toEqual(['GET /warm', 'GET /']);
  });
});

describe('I2 one-to-one: responses before the end of a request', () => {
  it('I2 one-to-one: bytes after an early response are neither body nor request', async () => {
    const gate = Promise.withResolvers<void>();
    await using scene = await createScene({
      async respond({ send }) {
        await send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no');
        await gate.promise;
        await send('k');
      },
    });
    await using client = await scene.tunnel();
    await client.send(`${head('POST /', scene.at(), ['Content-Length: 10'])}12345`);
    expect((await client.readHead()).headers).toContainEqual(['Connection', 'close']);
    await client.send(`67890${SMUGGLED}`);
    await client.send(SMUGGLED);
    gate.resolve();
    expect(await client.readToEnd()).toBe('ok');
    expect(targetsAt(scene)).toEqual(['POST /']);
    expect(scene.origin.transcripts.join('')).not.toContain('67890');
  });

  it('I2 one-to-one: a body that waits for 100 is not sent after a final response', async () => {
    await using scene = await createScene({ respond: ({ send }) => send(response(401, [], 'no')) });
    await using client = await scene.tunnel();
    const fields = ['Expect: 100-continue', `Content-Length: ${SMUGGLED.length}`];
    await client.send(`${head('POST /', scene.at(), fields)}${SMUGGLED}${SMUGGLED}`);
    expect((await client.readResponse()).head.status).toBe(401);
    expect(await client.readToEnd()).toBe('');
    expect(targetsAt(scene)).toEqual(['POST /']);
    expect(scene.origin.transcripts.join('')).not.toContain('smuggled');
    // The origin still waits for that body: it must not take the request of another client as the body.
    await using other = await scene.tunnel();
    await other.send(head('GET /other', scene.at()));
    expect((await other.readResponse()).head.status).toBe(401);
    expect(scene.origin.requests[1]).toMatchObject({ target: '/other', connection: 1 });
  });

  it('I2 one-to-one: after 100 the body is sent once', async () => {
    await using scene = await createScene({
      async respond({ send, readBody }) {
        await send('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n');
        await readBody();
        await send(OK);
      },
    });
    await using client = await scene.tunnel();
    await client.send(`${head('POST /', scene.at(), ['Expect: 100-continue', 'Content-Length: 4'])}body`);
    expect([(await client.readHead()).status, (await client.readHead()).status]).toEqual([100, 100]);
    expect((await client.readResponse()).text).toBe('ok');
    expect(scene.origin.requests.map(({ body }) => body?.content.toString())).toEqual(['body']);
  });

  it('I2 one-to-one: a client that disconnects inside its body completes no request', async () => {
    const over = Promise.withResolvers<unknown>();
    await using scene = await createScene({
      respond: ({ readBody }) => readBody().then(over.resolve, over.resolve),
    });
    await using client = await scene.tunnel();
    await client.send(`${head('POST /', scene.at(), ['Transfer-Encoding: chunked'])}2\r\nxx\r\n`);
    await scene.origin.request(0);
    client.end();
    expect(await over.promise).toBeInstanceOf(Error);
    expect(scene.origin.requests).toMatchObject([{ body: undefined }]);
  });
});

describe('I2 one-to-one: bytes outside any request', () => {
  const EARLY = '\x81\x05early';

  it('I2 one-to-one: early bytes of an upgrade are sent only after the 101', async () => {
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<string | undefined>();
    await using scene = await createScene({
      async respond(exchange) {
        if (exchange.request.target !== '/ws') return reply(exchange);
        await gate.promise;
        await exchange.send(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
        );
        arrived.resolve((await exchange.reader.readSome())?.toString('latin1'));
        exchange.end();
      },
    });
    await using client = await scene.tunnel();
    await client.send(`${head('GET /ws', scene.at(), upgrade)}${EARLY}`);
    const { head: sent } = await scene.origin.request(0);
    // When another exchange through the same proxy has ended, any early bytes would have arrived.
    await using other = await scene.tunnel();
    await other.send(head('GET /', scene.at()));
    await other.readResponse();
    expect(scene.origin.transcripts[0]).toBe(sent);
    gate.resolve();
    expect((await client.readHead()).status).toBe(101);
    expect(await arrived.promise).toBe(EARLY);
  });

  it('I2 one-to-one: early bytes of an upgrade with the response 200 are never sent', async () => {
    await using scene = await createScene({ respond: reply });
    await using client = await scene.tunnel();
    await client.send(`${head('GET /ws', scene.at(), upgrade)}${EARLY}${SMUGGLED}`);
    expect((await client.readResponse()).text).toBe('ok');
    expect((await client.readResponse()).head.status).toBe(400);
    expect(await client.readToEnd()).toBe('');
    expect(scene.origin.transcripts.join('')).toBe(scene.origin.requests[0]?.head);
  });

  const refused: readonly (readonly [why: string, fields: readonly string[], reply: string])[] = [
    ['that was not requested', [], 'Connection: upgrade\r\nUpgrade: websocket'],
    [
      'to an upgrade to h2c',
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
      'Connection: upgrade\r\nUpgrade: h2c',
    ],
    [
      'to a list of upgrades',
      ['Connection: Upgrade', 'Upgrade: h2c, websocket'],
      'Connection: upgrade\r\nUpgrade: websocket',
    ],
    [
      'to an upgrade that Connection does not nominate',
      ['Upgrade: websocket'],
      'Connection: upgrade\r\nUpgrade: websocket',
    ],
    ['with another protocol', upgrade, 'Connection: upgrade\r\nUpgrade: h2c'],
    ['without a protocol', upgrade, 'X-A: 1'],
  ];
  it.each(refused)('I2 one-to-one: a 101 %s is not relayed', async (_, fields, reply) => {
    await using scene = await createScene({
      respond: ({ send }) => send(`HTTP/1.1 101 Switching Protocols\r\n${reply}\r\n\r\nunasked`),
    });
    await using client = await scene.tunnel();
    await client.send(`${head('GET /', scene.at(), fields)}${EARLY}`);
    const { head: seen, text } = await client.readResponse();
    expect([seen.status, JSON.parse(text).error]).toEqual([502, 'upstream_malformed']);
    expect(client.transcript).not.toContain('unasked');
    expect(scene.origin.transcripts.join('')).toBe(scene.origin.requests[0]?.head);
  });

  const connects: readonly (readonly [why: string, connect: string, status: number])[] = [
    ['to a denied host', 'CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\n', 403],
    ['without a port', 'CONNECT api.test HTTP/1.1\r\nHost: api.test\r\n\r\n', 400],
    ['with a length', 'CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\nContent-Length: 9\r\n\r\n', 400],
    ['with a coding', 'CONNECT api.test:443 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
    ['to a closed port', 'CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n', 502],
  ];
  it.each(connects)(
    'I2 one-to-one: the bytes after a refused CONNECT %s are not read as a request',
    async (_, connect, status) => {
      await using plain = await createOrigin();
      await using scene = await createScene();
      scene.proxy.apply({ rules: [bearerRule('api.test')], access_control: { deny_list: ['denied.test'] } });
      await using client = await scene.client();
      const authority = `other.test:${plain.port}`;
      await client.send(`${connect}${head(`GET http://${authority}/smuggled`, authority)}`);
      expect((await client.readResponse()).head.status).toBe(status);
      expect(await client.readToEnd()).toBe('');
      expect(plain.connections).toBe(0);
    },
  );
});

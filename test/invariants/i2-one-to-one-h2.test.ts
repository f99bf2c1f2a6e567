// I2 over HTTP/2: one accepted request causes at most one complete upstream request, and no byte is sent that belongs to no
// request. No origin must ever receive a request for `/smuggled`.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type H2Exchange, echoStream } from '../support/h2-exchange.ts';
import { type ErrorName, PREFACE, dataFrame, goawayFrame, headersFrame } from '../support/h2-frames.ts';
import { type H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import { type SentField, encodeBlock } from '../support/hpack.ts';
import { head } from './credential-scene.ts';
import { type H2Scene, arrival, bytesAt, createH2Scene } from './h2-scene.ts';

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';
const POST = { ':method': 'POST' };

function requestsAt({ origin }: H2Scene): readonly string[] {
  return origin.streams.map(({ method, path }) => `${method} ${path}`);
}

/** A request sent after the attack: its response shows that the proxy has processed the attack. */
async function settle(scene: H2Scene): Promise<void> {
  await using other = await scene.client();
  expect((await other.request(other.fields('/settled'))).status).toBe(200);
}

describe('I2 one-to-one: many streams', () => {
  it('I2 one-to-one: each request arrives once and complete, with bodies split and interleaved in any way', async () => {
    await using scene = await createH2Scene();
    const body = fc.oneof(
      fc.constant(undefined),
      fc.constant(SMUGGLED),
      fc.string({ minLength: 0, maxLength: 300 }),
      fc.integer({ min: 60_000, max: 90_000 }).map((size) => 'x'.repeat(size)),
    );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 8 }), async (bodies) => {
        await using client = await scene.client();
        const asked = bodies.map(async (text) => {
          count += 1;
          const path = `/${count}`;
          const fields = client.fields(path, [], text === undefined ? {} : POST);
          const { status } = await client.request(fields, text === undefined ? {} : { body: text });
          expect(status).toBe(200);
          const arrived = scene.origin.streams.filter((stream) => stream.path === path);
          expect(arrived.map((stream) => [stream.isEnded, stream.body.content.toString()])).toEqual([
            [true, text ?? ''],
          ]);
        });
        await Promise.all(asked);
      }),
      { numRuns: 20 },
    );
    expect(scene.origin.streams).toHaveLength(count);
  });
});

describe('I2 one-to-one: half a request', () => {
  type End = (client: H2WireClient, id: number) => Promise<unknown> | unknown;
  const reset =
    (code: ErrorName): End =>
    (client, id) =>
      client.peer.stream(id).reset(code);
  const ends: readonly (readonly [how: string, end: End])[] = [
    ['a reset with NO_ERROR', reset('NO_ERROR')],
    ['a reset with CANCEL', reset('CANCEL')],
    ['a reset with INTERNAL_ERROR', reset('INTERNAL_ERROR')],
    ['a FIN', (client) => client.wire.end()],
    ['an RST', (client) => client.wire.reset()],
    ['GOAWAY and FIN', (client) => client.send(goawayFrame(0)).then(() => client.wire.end())],
    ['an HTTP/1.1 request in its place', (client) => client.send(SMUGGLED)],
    ['a frame that breaks the protocol', (client) => client.send(dataFrame(0, SMUGGLED))],
  ];
  const bodies: readonly (readonly [what: string, extra: readonly SentField[], sent: string])[] = [
    ['no byte of its body', [], ''],
    ['some of its body', [], 'half'],
    ['less than its length', [['content-length', '8']], 'half'],
    ['all but its end', [['content-length', '4']], 'full'],
  ];
  const cases = ends.flatMap(([how, end]) =>
    bodies.map(([what, extra, sent]) => [what, how, extra, sent, end] as const),
  );
  it.each(cases)(
    'I2 one-to-one: after %s and %s the request is never complete',
    async (_, __, extra, sent, end) => {
      await using scene = await createH2Scene();
      await using client = await scene.client();
      const stream = await client.open(client.fields('/', extra, POST));
      const request = await scene.origin.stream(0);
      if (sent !== '') await stream.data(sent);
      await settle(scene);
      await end(client, stream.id);
      expect(await request.ended()).toBe(false);
      expect([request.isEnded, request.body.content.toString()]).toEqual([
        false,
        expect.stringMatching(/^(half|full)?$/),
      ]);
      await settle(scene);
      expect(requestsAt(scene).filter((line) => line !== 'GET /settled')).toEqual(['POST /']);
    },
  );

  it('I2 one-to-one: half a header block is neither a request nor the start of the next head', async () => {
    await using scene = await createH2Scene();
    await using client = await scene.client();
    const block = encodeBlock(client.fields('/half'));
    await client.send(headersFrame(1, block.subarray(0, 20), { isOpen: true, isEnd: true }));
    await client.send(headersFrame(3, encodeBlock(client.fields('/smuggled')), { isEnd: true }));
    await client.closed;
    await settle(scene);
    expect(requestsAt(scene)).toEqual(['GET /settled']);
  });

  it('I2 one-to-one: a request that its client cancels during the dial is never sent', async () => {
    const held = Promise.withResolvers<readonly string[]>();
    const callbacks = [{ match_hosts: ['api.test'], url: 'http://callback.test:9/', ttl_seconds: 60 }];
    await using scene = await createH2Scene({
      rules: [],
      callbacks,
      resolve: { 'callback.test': held.promise },
    });
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], POST));
    await stream.data('all', { isEnd: true });
    await expect.poll(() => scene.proxy.lookups).toContain('callback.test');
    await stream.reset();
    expect(await scene.proxy.record(0)).toMatchObject({ reason: 'client_gone' });
    held.resolve([]);
    const header = { name: 'X-Key', type: 'plaintext', value: 'one' };
    scene.proxy.apply({ rules: [{ match_hosts: ['api.test'], headers: [header] }] });
    await settle(scene);
    expect(requestsAt(scene)).toEqual(['GET /settled']);
  });
});

describe('I2 one-to-one: requests that could be read as two', () => {
  type Row = readonly [why: string, extra: readonly SentField[], body: string | undefined, seen: unknown];
  const reset = { status: 0, reset: 'PROTOCOL_ERROR' };
  const rows: readonly Row[] = [
    ['a coding', [['transfer-encoding', 'chunked']], `0\r\n\r\n${SMUGGLED}`, reset],
    ['a length that is too short', [['content-length', '2']], `xx${SMUGGLED}`, reset],
    ['a length that is too long', [['content-length', '99']], 'xx', reset],
    [
      'two lengths',
      [
        ['content-length', '2'],
        ['content-length', '40'],
      ],
      'xx',
      reset,
    ],
    ['a length with a sign', [['content-length', '+2']], 'xx', reset],
    ['a length with an underscore', [['content_length', '2']], 'xx', { status: 400 }],
    ['a coding with an underscore', [['transfer_encoding', 'chunked']], 'xx', { status: 400 }],
    ['a length and no body', [['content-length', '40']], undefined, reset],
    ['another Expect', [['expect', '100-continue, x']], 'xx', { status: 417 }],
    ['an upgrade', [['upgrade', 'websocket']], SMUGGLED, reset],
  ];
  it.each(rows)(
    'I2 one-to-one: %s is rejected over h2, and no complete request is sent',
    async (_, extra, body, seen) => {
      await using scene = await createH2Scene();
      await using client = await scene.client();
      const fields = client.fields('/', extra, POST);
      // nghttp2 closes the connection for some of them.
      const lost = (error: Error): object => ({ ...reset, error });
      const response = await client.request(fields, body === undefined ? {} : { body }).catch(lost);
      expect(response).toMatchObject(seen as object);
      await settle(scene);
      const others = scene.origin.streams.filter(({ path }) => path !== '/settled');
      expect(await Promise.all(others.map((request) => request.ended()))).not.toContain(true);
      expect(bytesAt(scene)).not.toContain('smuggled');
    },
  );

  it.each([
    ['in a value', ['x-a', `1\r\n\r\n${SMUGGLED}`]],
    ['in a name', [`x-a: 1\r\n\r\n${SMUGGLED}`, '1']],
  ] as const)('I2 one-to-one: a request with a CRLF %s reaches no origin', async (_, field) => {
    await using scene = await createH2Scene();
    const { response } = await arrival(scene, [field as SentField]);
    expect(response.status).toBe(200);
    expect(requestsAt(scene)).toEqual(['GET /']);
    expect(bytesAt(scene)).not.toContain('smuggled');
  });

  const late: readonly (readonly [what: string, frames: (id: number, block: Buffer) => Buffer])[] = [
    ['DATA', (id) => dataFrame(id, SMUGGLED, { isEnd: true })],
    ['a head', (id, block) => headersFrame(id, block, { isEnd: true })],
  ];
  it.each(late)('I2 one-to-one: %s after the end of a request is not sent', async (_, frames) => {
    const gate = Promise.withResolvers<void>();
    await using scene = await createH2Scene({
      respond: async (exchange) => {
        if (exchange.request.path === '/') await gate.promise;
        await echoStream(exchange);
      },
    });
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], POST));
    await stream.data('all', { isEnd: true });
    const request = await scene.origin.stream(0);
    await request.ended();
    await client.send(frames(stream.id, encodeBlock(client.fields('/smuggled'))));
    await settle(scene);
    gate.resolve();
    expect(requestsAt(scene)).toEqual(['POST /', 'GET /settled']);
    expect(request.body.content.toString()).toBe('all');
  });

  it('I2 one-to-one: HTTP/1.1 inside HTTP/2, or the reverse, is no request', async () => {
    await using scene = await createH2Scene();
    await using over = await scene.client();
    await over.send(head('GET /smuggled', scene.at()));
    await over.closed;
    await using wire = await scene.wire();
    expect((await wire.openTunnel(scene.at())).status).toBe(200);
    await wire.startTls({ ca: scene.proxy.caPem, name: 'api.test', alpn: ['http/1.1'] });
    await wire.send(`${PREFACE}${SMUGGLED}`);
    expect((await wire.readResponse()).head.status).toBe(505);
    expect(await wire.readToEnd()).toBe('');
    await settle(scene);
    expect(bytesAt(scene)).not.toContain('smuggled');
    expect([requestsAt(scene), scene.origin.http1.requests]).toEqual([['GET /settled'], []]);
  });
});

describe('I2 one-to-one: a response before the end of a request', () => {
  it.each([
    [100, [['expect', '100-continue']]],
    [103, []],
  ] as const)(
    'I2 one-to-one: a POST is not sent again after an interim response (%i)',
    async (status, extra) => {
      await using scene = await createH2Scene({
        respond: async (exchange) => {
          if (exchange.request.path !== '/') return echoStream(exchange);
          await exchange.request.ended();
          await exchange.interim(status);
          await exchange.reset('REFUSED_STREAM');
        },
      });
      await using client = await scene.client();
      const response = await client.request(client.fields('/', extra, POST), { body: 'once' });
      // REFUSED_STREAM would have the client send it again.
      expect([response.status, response.reset]).toEqual([0, 'INTERNAL_ERROR']);
      await settle(scene);
      expect(requestsAt(scene)).toEqual(['POST /', 'GET /settled']);
    },
  );

  it('I2 one-to-one: the rest of the body is not sent after a complete response', async () => {
    await using scene = await createH2Scene({
      respond: (exchange) =>
        exchange.request.path === '/'
          ? exchange.response(413, [], 'no').then(() => void exchange.reset('NO_ERROR'))
          : echoStream(exchange),
    });
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], POST));
    await stream.data('half');
    expect((await client.response(stream)).status).toBe(413);
    // RFC 9113 §8.1: the host wants no more of the body.
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    await stream.data(SMUGGLED, { isEnd: true });
    await settle(scene);
    const [request] = scene.origin.streams;
    expect([request?.isEnded, request?.body.content.toString()]).toEqual([false, 'half']);
  });

  it('I2 one-to-one: a 101 is not relayed', async () => {
    await using scene = await createH2Scene({
      respond: async (exchange: H2Exchange) => {
        if (exchange.request.path !== '/') return echoStream(exchange);
        await exchange.interim(101, [['upgrade', 'websocket']]);
        await exchange.data('unasked');
      },
    });
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], POST));
    const response = await client.response(stream);
    expect([response.status, refusalOf(response) ?? response.reset]).not.toContain(101);
    expect(response.interim).toEqual([]);
    expect(response.text).not.toContain('unasked');
    await stream.data(SMUGGLED);
    await settle(scene);
    expect(bytesAt(scene)).not.toContain('smuggled');
  });
});

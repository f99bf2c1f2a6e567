// The HTTP/2 test peers must send and report exactly what is on the wire. Here they are tested against each other, in
// h2-foreign-peers.test.ts against other implementations.
import { describe, expect, it } from 'vitest';
import { encodeFrame, pingFrame, windowFrame } from './h2-frames.ts';
import { createH2Origin, type H2OriginOptions } from './h2-origin.ts';
import { fieldOf, H2WireClient } from './h2-wire-client.ts';
import { literal } from './hpack.ts';
import { createTestAuthority } from './test-authority.ts';
import { WireClient } from './wire-client.ts';

const authority = createTestAuthority();
const tls = { authority, names: ['good.test'] };
const trust = { ca: authority.certificatePem, name: 'good.test' };
const big = Buffer.alloc(300_000, 'sixteen bytes..\n');

const originWith = (options: Partial<H2OriginOptions> = {}) => createH2Origin({ tls, ...options });

describe('the raw client and the recording origin', () => {
  it('carry a request as sent and its response as scripted', async () => {
    await using origin = await originWith({
      async respond({ request, interim, head, data, trailers }) {
        await request.ended();
        await interim(103, [['link', '</a>']]);
        await head(200, [['X-Case', ' kept '], literal('x-never', 'n', 'never')]);
        await data('one');
        await data('two');
        await trailers([['grpc-status', '0']]);
      },
    });
    await using client = await H2WireClient.connect(origin.port, trust);
    const fields = client.fields('/a?b', [
      ['x-b', '1'],
      ['x-a', '2', 'never'],
      ['x-b', '3', 'indexing'],
    ]);
    const response = await client.request(fields, { body: 'abc', trailers: [['x-end', 'yes']] });
    expect(response).toMatchObject({
      status: 200,
      headers: [
        ['X-Case', ' kept '],
        ['x-never', 'n'],
      ],
      neverIndexed: ['x-never'],
      interim: [{ status: 103, headers: [['link', '</a>']] }],
      text: 'onetwo',
      trailers: [['grpc-status', '0']],
      reset: undefined,
    });
    const [stream] = origin.streams;
    expect(stream?.headers).toEqual([
      [':method', 'GET'],
      [':scheme', 'https'],
      [':authority', client.authority],
      [':path', '/a?b'],
      ['x-b', '1'],
      ['x-a', '2'],
      ['x-b', '3'],
    ]);
    expect(stream).toMatchObject({ id: 1, neverIndexed: ['x-a'], trailers: [['x-end', 'yes']] });
    expect(stream?.body.content.toString()).toBe('abc');
    expect(origin.failures).toEqual([]);
  });

  it('reassemble header blocks that arrive in pieces', async () => {
    await using origin = await originWith({
      respond: ({ head }) => void head(200, [['x-long', 'y'.repeat(50)]], { isEnd: true, split: 7 }),
    });
    await using client = await H2WireClient.connect(origin.port, trust);
    const stream = await client.open(client.fields('/', [['x-long', 'x'.repeat(50)]]), {
      isEnd: true,
      split: 9,
    });
    expect(fieldOf(await client.head(stream), 'x-long')).toBe('y'.repeat(50));
    expect(origin.streams[0]?.values('x-long')).toEqual(['x'.repeat(50)]);
    expect(origin.connections[0]?.peer?.counts['CONTINUATION']).toBeGreaterThan(5);
    expect(client.peer.counts['CONTINUATION']).toBeGreaterThan(5);
  });

  it('abort streams and connections with the given code', async () => {
    await using origin = await originWith({
      async respond({ request, reset, goaway, send, push, connection }) {
        if (request.path === '/reset') await reset('ENHANCE_YOUR_CALM');
        if (request.path === '/odd') await reset(0x99);
        if (request.path === '/push') await push('/pushed');
        if (request.path === '/bad')
          await send(encodeFrame({ type: 0xbad & 0xff, stream: 7, length: 2 }), 'xx');
        if (request.path === '/goaway') await goaway(0, 'INTERNAL_ERROR', 'why');
        if (request.path === '/destroy') connection.destroy();
      },
    });
    await using client = await H2WireClient.connect(origin.port, trust);
    expect(await client.request(client.fields('/reset'))).toMatchObject({
      status: 0,
      reset: 'ENHANCE_YOUR_CALM',
    });
    expect((await client.request(client.fields('/odd'))).reset).toBe(0x99);
    const silent = await client.open(client.fields('/push'), { isEnd: true });
    await client.frame(({ type }) => type === 'PUSH_PROMISE');
    expect(client.peer.stream(2).blocks[0]?.fields[3]).toMatchObject({ name: ':path', value: '/pushed' });
    await client.open(client.fields('/bad'));
    expect(await client.frame(({ type }) => type === 0xad)).toMatchObject({
      stream: 7,
      payload: Buffer.from('xx'),
    });
    await silent.reset('CANCEL');
    expect(await origin.streams[2]?.resetOrClosed()).toBe('CANCEL');
    await expect(client.request(client.fields('/goaway'))).rejects.toThrow(/lost: GOAWAY INTERNAL_ERROR why/);
    expect(await client.goaway()).toEqual({ lastStream: 0, code: 'INTERNAL_ERROR', debug: 'why' });
    await client.open(client.fields('/destroy'));
    expect(await client.closed).toBe('ECONNRESET');
    expect(await client.send(pingFrame())).toBe(false);
  });

  it('obey windows, and grant them only on request', async () => {
    await using origin = await originWith({ settings: { initial_window_size: 10 }, isGranting: false });
    await using client = await H2WireClient.connect(origin.port, trust);
    await client.frame(({ type }) => type === 'SETTINGS');
    const stream = await client.open(client.fields('/'));
    const sent = stream.data('x'.repeat(25), { isEnd: true });
    const request = await origin.stream(0);
    const peer = origin.connections[0]?.peer;
    await peer?.until(() => request.body.length === 10 || undefined, '10 bytes');
    expect([stream.window, request.isEnded]).toEqual([0, false]);
    await peer?.send(windowFrame(1, 100));
    expect(await sent).toBe(true);
    expect(await request.ended()).toBe(true);
    expect(request.body.length).toBe(25);
  });

  it('receive no more than the default window of a client', async () => {
    await using origin = await originWith({ respond: ({ response }) => void response(200, [], big) });
    await using client = await H2WireClient.connect(origin.port, trust, { isGranting: false });
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await client.peer.until(() => stream.length === 65_535 || undefined, 'a window');
    await client.send(windowFrame(0, big.length), windowFrame(1, big.length));
    expect((await client.response(stream)).length).toBe(big.length);
  });

  it('count concurrent streams', async () => {
    const gate = Promise.withResolvers<void>();
    await using origin = await originWith({
      settings: { max_concurrent_streams: 2 },
      respond: ({ response }) => void gate.promise.then(() => response(204)),
    });
    await using client = await H2WireClient.connect(origin.port, trust);
    const responses = [1, 2, 3].map(() => client.request(client.fields('/')));
    await origin.stream(2);
    gate.resolve();
    await Promise.all(responses);
    await client.request(client.fields('/'));
    expect(origin.connections[0]).toMatchObject({ mostStreams: 3, protocol: 'h2', serverName: 'good.test' });
    expect(client.peer.remote).toEqual({ max_concurrent_streams: 2 });
  });

  it('choose by ALPN from what the origin currently offers', async () => {
    await using origin = await originWith();
    const chosen = async (alpn: readonly string[]): Promise<unknown> => {
      await using wire = await WireClient.connect(origin.port);
      return (await wire.startTls({ ...trust, alpn })).alpnProtocol;
    };
    expect(await chosen(['http/1.1', 'h2'])).toBe('h2');
    origin.offer(['http/1.1']);
    expect(await chosen(['h2', 'http/1.1'])).toBe('http/1.1');
    await expect(chosen(['h2'])).rejects.toThrow(/no application protocol/);
    origin.offer([]);
    expect(await chosen(['h2'])).toBe(false);
    const offered = origin.connections.map((connection) => connection.offered);
    expect(offered).toEqual([['http/1.1', 'h2'], ['h2', 'http/1.1'], ['h2'], undefined]);
  });

  it('speak HTTP/1.1 where that was chosen', async () => {
    await using origin = await originWith({ protocols: ['http/1.1'] });
    await using wire = await WireClient.connect(origin.port);
    await wire.startTls(trust);
    await wire.send('GET /1 HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(JSON.parse((await wire.readResponse()).text)).toMatchObject({ target: '/1' });
    wire.end();
    expect(await wire.finished).toBe('end');
    expect(origin.http1.requests[0]).toMatchObject({ target: '/1', headers: [['Host', 'x']] });
    expect(origin.streams).toEqual([]);
  });
});

// Pings of gRPC: keep-alive, which all clients have, and bandwidth estimation, for which some (Go) send one ping for each
// piece of a response. Neither is a flood.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { FloodGauge } from '../../src/proxy/h2/flood-gauge.ts';
import { createH2Path } from '../proxy/h2/h2-path.ts';
import { pingFrame } from '../support/h2-frames.ts';
import { callBidi, callServerStream, readAll, statusOf } from './grpc-client.ts';
import { createGrpcProxy, createGrpcServer, type GrpcProxy, type GrpcServer } from './grpc-scene.ts';

const MESSAGES = 2_000;
const MESSAGE = Buffer.from([0, 0, 0, 0, 3, 0x6f, 0x6e, 0x65]);

describe('a ping for each message of a response', () => {
  it('does not end the connection', async () => {
    await using path = await createH2Path({
      origin: {
        async respond({ request, head, data, trailers }) {
          await request.ended();
          await head(200, [['content-type', 'application/grpc']]);
          for (let i = 0; i < MESSAGES; i += 1) await data(MESSAGE);
          await trailers([['grpc-status', '0']]);
        },
      },
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/test.Echo/ServerStream'), { isEnd: true });
    let responded = 0;
    await client.peer.until(() => {
      for (; responded < (client.peer.counts['DATA'] ?? 0); responded += 1) void client.send(pingFrame());
      return stream.isEnded || undefined;
    }, 'the end of the response');
    const { trailers, length } = await client.response(stream);
    expect({ trailers, length }).toEqual({
      trailers: [['grpc-status', '0']],
      length: MESSAGES * MESSAGE.length,
    });
    expect(responded).toBeGreaterThan(400);
    // The connection can still be used.
    expect(await client.request(client.fields('/test.Echo/Unary'))).toMatchObject({ status: 200 });
  });

  it('ends the connection without the messages', async () => {
    await using path = await createH2Path();
    const client = await path.client();
    for (let i = 0; i < MESSAGES; i += 1) if (!(await client.send(pingFrame()))) break;
    // With this code gRPC clients know that they must ping less often.
    expect(await client.goaway()).toMatchObject({ code: 'ENHANCE_YOUR_CALM' });
    await client.closed;
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'client_flood', cause: 'pings' });
  });
});

describe('keep-alive of grpc-js, on both sides', () => {
  const keepAlive = { 'grpc.keepalive_time_ms': 20, 'grpc.keepalive_timeout_ms': 5_000 };
  let server: GrpcServer;
  let proxy: GrpcProxy;
  beforeAll(async () => {
    server = await createGrpcServer({}, keepAlive);
    proxy = await createGrpcProxy();
  });
  afterEach(() => void vi.restoreAllMocks());
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  it('keeps a silent call and its connection open', async () => {
    const { promise: pinged, resolve } = Promise.withResolvers<void>();
    const { onPing } = FloodGauge.prototype;
    const seen = vi.spyOn(FloodGauge.prototype, 'onPing').mockImplementation(function (this: FloodGauge) {
      onPing.call(this);
      if (seen.mock.calls.length === 30) resolve();
    });
    const client = proxy.client(`good.test:${server.port}`, keepAlive);
    const call = callBidi(client);
    call.on('error', () => undefined);
    const ended = statusOf(call);
    const first = new Promise((refresh) => call.once('data', refresh));
    call.write(Buffer.from('one'));
    expect(String(await first)).toBe('one');
    await pinged;
    const second = new Promise((refresh) => call.once('data', refresh));
    call.write(Buffer.from('two'));
    expect(String(await second)).toBe('two');
    call.end();
    expect(await ended).toMatchObject({ code: 0 });
    const { messages } = await readAll(callServerStream(client, 'a b c'));
    expect(messages.map(String)).toEqual(['a', 'b', 'c']);
  });
});

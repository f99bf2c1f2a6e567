// What gRPC clients see when a call fails: an error response of the proxy is an HTTP response that gRPC maps to a status
// (http-grpc-status-mapping.md). And what happens when a server closes its connection.
import { once } from 'node:events';
import { Metadata, type ServerUnaryCall, status as codes } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createH2Origin, type H2Origin, type H2OriginOptions } from '../support/h2-origin.ts';
import type { LogRecord } from '../support/spawned-process.ts';
import { callBidi, callUnary, readAll, statusOf } from './grpc-client.ts';
import { createGrpcProxy, createGrpcServer, type GrpcProxy, origins } from './grpc-scene.ts';

let proxy: GrpcProxy;
beforeAll(async () => void (proxy = await createGrpcProxy()));
afterAll(() => proxy[Symbol.asyncDispose]());

const rawOrigin = (options: Partial<H2OriginOptions>): Promise<H2Origin> =>
  createH2Origin({ tls: { authority: origins, names: ['good.test'] }, ...options });
const recordOf = ({ port }: { readonly port: number }, index?: number): Promise<unknown> =>
  proxy.recordOf(`good.test:${port}`, index);
const recordsOf = ({ port }: { readonly port: number }): readonly LogRecord[] =>
  proxy.sidecar.records().filter(({ authority }) => authority === `good.test:${port}`);
const OK = Buffer.from([0, 0, 0, 0, 2, 0x6f, 0x6b]);

/** Responds to a call with `ok`. */
const succeed: NonNullable<H2OriginOptions['respond']> = async ({ head, data, trailers }) => {
  await head(200, [['content-type', 'application/grpc']]);
  await data(OK);
  await trailers([['grpc-status', '0']]);
};

describe('a rejected call', () => {
  it('is UNAVAILABLE when the host does not support HTTP/2', async () => {
    await using origin = await rawOrigin({ protocols: ['http/1.1'] });
    const { status } = callUnary(proxy.client(`good.test:${origin.port}`), 'one');
    expect(await status).toMatchObject({
      code: codes.UNAVAILABLE,
      details: 'the upstream does not speak HTTP/2; connect again and offer http/1.1 by ALPN too',
    });
    expect(await recordOf(origin)).toMatchObject({
      outcome: 'failed',
      reason: 'h2_unavailable',
      status: 502,
    });
    expect(origin.http1.requests).toHaveLength(0);
  });

  it('is UNAVAILABLE when no server listens', async () => {
    const origin = await rawOrigin({});
    const client = proxy.client(`good.test:${origin.port}`);
    await origin.close();
    expect(await callUnary(client, 'one').status).toMatchObject({ code: codes.UNAVAILABLE });
    expect(await recordOf(origin)).toMatchObject({ reason: 'upstream_unreachable', status: 502 });
  });

  it.each([
    ['has too many fields', 120, 1],
    ['is too large', 1, 17_000],
  ])('is RESOURCE_EXHAUSTED when its metadata %s, and the next one succeeds', async (_, fields, bytes) => {
    await using server = await createGrpcServer();
    const metadata = new Metadata();
    for (let i = 0; i < fields; i += 1) metadata.set(`x-${i}`, 'y'.repeat(bytes));
    const client = proxy.client(`good.test:${server.port}`);
    const { status } = callUnary(client, 'one', { metadata });
    expect(await status).toMatchObject({ code: codes.RESOURCE_EXHAUSTED });
    expect(server.calls).toHaveLength(0);
    expect(String(await callUnary(client, 'two').response)).toBe('two');
  });

  it('in plaintext never reaches the server, and is recorded', async () => {
    await using server = await createGrpcServer();
    const client = proxy.client(`good.test:${server.port}`, { isClear: true });
    const { code } = await callUnary(client, 'one').status;
    expect(code).toBe(codes.UNAVAILABLE);
    expect(await recordOf(server)).toMatchObject({
      authority: `good.test:${server.port}`,
      outcome: 'refused',
      reason: 'version_refused',
      cause: 'http2_preface',
      status: 505,
    });
    expect(server.calls).toHaveLength(0);
  });
});

describe('a server that closes its connection', () => {
  it('finishes its current calls, and gets the next ones on a new connection', async () => {
    await using server = await createGrpcServer();
    const client = proxy.client(`good.test:${server.port}`);
    const call = callBidi(client);
    const ended = statusOf(call);
    call.write(Buffer.from('before'));
    await once(call, 'data');
    server.server.drain(`127.0.0.1:${server.port}`, 60_000);
    expect(String(await callUnary(client, 'next').response)).toBe('next');
    call.write(Buffer.from('after'));
    expect(String(await once(call, 'data'))).toBe('after');
    call.end();
    expect(await ended).toMatchObject({ code: codes.OK });
  });

  it('repeatedly loses none of 1,000 calls', async () => {
    await using server = await createGrpcServer({}, { 'grpc.max_connection_age_ms': 20 });
    const client = proxy.client(`good.test:${server.port}`);
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 50 }, (_, i) => callUnary(client, `${round} ${i}`));
      const responses = await Promise.all(calls.map(({ response }) => response));
      expect(responses.map(String)).toEqual(calls.map((_, i) => `${round} ${i}`));
    }
    expect(server.calls).toHaveLength(1_000);
    const sessions = recordsOf(server).filter((record) => record['upstream_reused'] === false);
    expect(sessions.length).toBeGreaterThan(3);
  });

  it('gets a call once more when it reports that it has not read it', async () => {
    await using origin = await rawOrigin({
      async respond(exchange) {
        const { request, goaway, connection } = exchange;
        await request.ended();
        if (request.connection > 0) return succeed(exchange);
        await goaway(0);
        connection.end();
      },
    });
    expect(String(await callUnary(proxy.client(`good.test:${origin.port}`), 'one').response)).toBe('ok');
    expect(origin.streams.map(({ connection }) => connection)).toEqual([0, 1]);
    expect(origin.streams.map(({ body }) => body.length)).toEqual([8, 8]);
    expect(await recordOf(origin)).toMatchObject({ outcome: 'injected', status: 200 });
    // grpc-js would have retried it too, if it had seen the failure.
    expect(recordsOf(origin)).toHaveLength(1);
  });

  it('without a GOAWAY gets no call twice: it may have been processed', async () => {
    await using origin = await rawOrigin({
      async respond({ request, connection }) {
        await request.ended();
        connection.destroy();
      },
    });
    const { status } = callUnary(proxy.client(`good.test:${origin.port}`), 'one');
    expect(await status).toMatchObject({ code: codes.UNAVAILABLE });
    expect(await recordOf(origin)).toMatchObject({ outcome: 'failed', reason: 'upstream_closed' });
    expect(origin.streams).toHaveLength(1);
  });

  it('in the middle of a response does not complete the response', async () => {
    await using origin = await rawOrigin({
      async respond({ head, data, connection }) {
        await head(200, [['content-type', 'application/grpc']]);
        await data(OK);
        connection.destroy();
      },
    });
    const { status } = await readAll(callBidi(proxy.client(`good.test:${origin.port}`)));
    expect(status.code).not.toBe(codes.OK);
    expect(await recordOf(origin)).toMatchObject({ outcome: 'failed', status: 200 });
  });
});

describe('retries of grpc-js', () => {
  const retrying = {
    'grpc.service_config': JSON.stringify({
      methodConfig: [
        {
          name: [{ service: 'test.Echo' }],
          retryPolicy: {
            maxAttempts: 3,
            initialBackoff: '0.01s',
            maxBackoff: '0.01s',
            backoffMultiplier: 1,
            retryableStatusCodes: ['UNAVAILABLE'],
          },
        },
      ],
    }),
  };

  it('are forwarded, with the number of the attempt', async () => {
    const seen: ServerUnaryCall<Buffer, Buffer>[] = [];
    await using server = await createGrpcServer({
      unary(call, response) {
        if (seen.push(call) < 3) response({ code: codes.UNAVAILABLE, details: 'not yet' });
        else response(null, call.request);
      },
    });
    const client = proxy.client(`good.test:${server.port}`, retrying);
    expect(String(await callUnary(client, 'one').response)).toBe('one');
    const attempts = server.calls.map((metadata) => metadata.get('grpc-previous-rpc-attempts'));
    expect(attempts).toEqual([[], ['1'], ['2']]);
  });

  // In gRPC a head that is not "trailers-only" commits the call to it.
  it('follow an error response of the proxy, as their policy says for UNAVAILABLE', async () => {
    const origin = await rawOrigin({});
    await origin.close();
    const client = proxy.client(`good.test:${origin.port}`, retrying);
    expect(await callUnary(client, 'one').status).toMatchObject({ code: codes.UNAVAILABLE });
    expect(recordsOf(origin)).toHaveLength(3);
  });
});

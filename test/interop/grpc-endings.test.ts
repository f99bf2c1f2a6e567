// Unsuccessful gRPC calls through an interception: errors, deadlines and cancellation, each as the other side must see it.
import { once } from 'node:events';
import { Metadata, type ServerDuplexStream, type ServerUnaryCall, status as codes } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ErrorName } from '../support/h2-frames.ts';
import { createH2Origin, type H2Origin, type H2OriginOptions } from '../support/h2-origin.ts';
import { callBidi, callClientStream, callServerStream, callUnary, readAll, statusOf } from './grpc-client.ts';
import { createGrpcProxy, createGrpcServer, type GrpcProxy, origins } from './grpc-scene.ts';

let proxy: GrpcProxy;
beforeAll(async () => void (proxy = await createGrpcProxy()));
afterAll(() => proxy[Symbol.asyncDispose]());

const rawOrigin = (respond: NonNullable<H2OriginOptions['respond']>): Promise<H2Origin> =>
  createH2Origin({ tls: { authority: origins, names: ['good.test'] }, respond });
const recordOf = ({ port }: { readonly port: number }, index?: number): Promise<unknown> =>
  proxy.recordOf(`good.test:${port}`, index);

describe('an error', () => {
  const details = Buffer.from([8, 3, 0, 0xff, 0x0a]);
  const refusal = (): object => {
    const metadata = new Metadata();
    metadata.set('grpc-status-details-bin', details);
    return { code: codes.INVALID_ARGUMENT, details: 'the name is “wrong”: 100%', metadata };
  };
  const wanted = { code: codes.INVALID_ARGUMENT, details: 'the name is “wrong”: 100%' };

  it('without a response arrives with its message and its details', async () => {
    await using server = await createGrpcServer({ unary: (_, response) => response(refusal()) });
    const { status } = callUnary(proxy.client(`good.test:${server.port}`), 'one');
    expect(await status).toMatchObject(wanted);
    expect((await status).metadata.get('grpc-status-details-bin')).toEqual([details]);
    expect(await recordOf(server)).toMatchObject({ outcome: 'injected', status: 200, bytes_down: 0 });
  });

  it('after some messages arrives after them', async () => {
    await using server = await createGrpcServer({
      serverStream(call) {
        for (const word of ['a', 'b']) call.write(Buffer.from(word));
        call.emit('error', refusal());
      },
    });
    const { messages, status } = await readAll(
      callServerStream(proxy.client(`good.test:${server.port}`), ''),
    );
    expect(messages.map(String)).toEqual(['a', 'b']);
    expect(status).toMatchObject(wanted);
  });

  it('ends an upload that the server no longer reads', async () => {
    await using server = await createGrpcServer({ clientStream: (_, response) => response(refusal()) });
    const { call, response } = callClientStream(proxy.client(`good.test:${server.port}`));
    call.on('error', () => undefined);
    const message = Buffer.alloc(60_000);
    const write = (): void => void call.write(message, write);
    write();
    await expect(response).rejects.toMatchObject(wanted);
  });

  it('is UNIMPLEMENTED for a method that the server does not have', async () => {
    await using server = await createGrpcServer();
    const client = proxy.client(`good.test:${server.port}`);
    server.server.unregister('/test.Echo/Unary');
    expect(await callUnary(client, 'one').status).toMatchObject({ code: codes.UNIMPLEMENTED });
  });

  it.each([
    ['the client', codes.RESOURCE_EXHAUSTED, { 'grpc.max_receive_message_length': 1_000 }, {}],
    ['the server', codes.RESOURCE_EXHAUSTED, {}, { 'grpc.max_receive_message_length': 1_000 }],
  ])('is the result of a message above the limit of %s', async (_, code, clientOptions, serverOptions) => {
    await using server = await createGrpcServer({}, serverOptions);
    const client = proxy.client(`good.test:${server.port}`, clientOptions);
    expect(await callUnary(client, Buffer.alloc(2_000)).status).toMatchObject({ code });
    expect(String(await callUnary(client, 'short').response)).toBe('short');
  });
});

describe('a deadline', () => {
  it('is sent to the server, and its expiry cancels the request', async () => {
    // The server does not respond; only the client signals that the deadline has expired.
    await using origin = await rawOrigin(() => undefined);
    const client = proxy.client(`good.test:${origin.port}`);
    const { status } = callUnary(client, 'one', { options: { deadline: Date.now() + 300 } });
    expect(await status).toMatchObject({ code: codes.DEADLINE_EXCEEDED });
    const request = await origin.stream(0);
    expect(request.values('grpc-timeout')).toEqual([expect.stringMatching(/^[1-9]\d{0,2}m$/)]);
    expect(request.values('te')).toEqual(['trailers']);
    expect(await request.resetOrClosed()).toBe('CANCEL');
    expect(await recordOf(origin)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
      cause: 'CANCEL',
    });
  });

  it('ends the call at a handler of grpc-js', async () => {
    const called = Promise.withResolvers<ServerUnaryCall<Buffer, Buffer>>();
    await using server = await createGrpcServer({ unary: (call) => called.resolve(call) });
    const client = proxy.client(`good.test:${server.port}`);
    const { status } = callUnary(client, 'one', { options: { deadline: Date.now() + 300 } });
    const call = await called.promise;
    expect(Number(call.getDeadline())).toBeLessThan(Date.now() + 301);
    await once(call, 'cancelled');
    expect(await status).toMatchObject({ code: codes.DEADLINE_EXCEEDED });
  });
});

describe('cancellation', () => {
  it('by the client reaches the handler, before and during a response', async () => {
    const called: ServerDuplexStream<Buffer, Buffer>[] = [];
    await using server = await createGrpcServer({
      bidi(call) {
        called.push(call);
        call.once('data', (message: Buffer) => call.write(message));
      },
    });
    const client = proxy.client(`good.test:${server.port}`);
    for (const message of ['', 'one']) {
      const call = callBidi(client);
      const ended = statusOf(call);
      call.write(Buffer.from(message));
      await once(call, 'data');
      const [handler] = called.splice(0);
      const cancelled = handler && once(handler, 'cancelled');
      call.cancel();
      expect(await ended).toMatchObject({ code: codes.CANCELLED });
      await cancelled;
    }
    expect(String(await callUnary(client, 'next').response)).toBe('next');
  });

  it('of a unary call reaches its handler, and no other call on the connection', async () => {
    const called = Promise.withResolvers<ServerUnaryCall<Buffer, Buffer>>();
    await using server = await createGrpcServer({
      unary(call, response) {
        if (String(call.request) === 'wait') called.resolve(call);
        else response(null, call.request);
      },
    });
    const client = proxy.client(`good.test:${server.port}`);
    const bystander = callBidi(client);
    bystander.write(Buffer.from('before'));
    await once(bystander, 'data');
    const call = callUnary(client, 'wait');
    const cancelled = called.promise.then((handler) => once(handler, 'cancelled'));
    await called.promise;
    call.cancel();
    expect(await call.status).toMatchObject({ code: codes.CANCELLED });
    await cancelled;
    bystander.write(Buffer.from('after'));
    expect(String(await once(bystander, 'data'))).toBe('after');
    bystander.end();
    expect(await statusOf(bystander)).toMatchObject({ code: 0 });
  });

  it('of every call, when the client disconnects', async () => {
    const cancelled: Promise<unknown>[] = [];
    const arrived = Promise.withResolvers<void>();
    await using server = await createGrpcServer({
      unary(call) {
        cancelled.push(once(call, 'cancelled'));
        if (cancelled.length === 20) arrived.resolve();
      },
    });
    const client = proxy.client(`good.test:${server.port}`);
    const calls = Array.from({ length: 20 }, () => callUnary(client, 'wait'));
    await arrived.promise;
    for (const call of calls) call.cancel();
    client.close();
    await Promise.all(cancelled);
  });

  // As gRPC maps the codes of HTTP/2 (PROTOCOL-HTTP2.md, "Errors").
  const resets: readonly (readonly [ErrorName, number])[] = [
    ['CANCEL', codes.CANCELLED],
    ['REFUSED_STREAM', codes.UNAVAILABLE],
    ['ENHANCE_YOUR_CALM', codes.RESOURCE_EXHAUSTED],
    ['INADEQUATE_SECURITY', codes.PERMISSION_DENIED],
    ['INTERNAL_ERROR', codes.INTERNAL],
  ];
  it.each(resets)(
    'by the server with %s has the status that gRPC maps that code to',
    async (code, wanted) => {
      await using origin = await rawOrigin(async ({ request, head, data, reset }) => {
        await request.ended();
        if (request.path === '/test.Echo/ServerStream') {
          await head(200, [['content-type', 'application/grpc']]);
          await data(Buffer.from([0, 0, 0, 0, 1, 0x61]));
        }
        await reset(code);
      });
      const client = proxy.client(`good.test:${origin.port}`);
      expect(await callUnary(client, 'one').status).toMatchObject({ code: wanted });
      const { messages, status } = await readAll(callServerStream(client, 'one'));
      expect(messages.map(String)).toEqual(['a']);
      expect(status).toMatchObject({ code: wanted });
      expect(await recordOf(origin, 1)).toMatchObject({
        outcome: 'failed',
        reason: 'upstream_reset',
        cause: code,
      });
    },
  );
});

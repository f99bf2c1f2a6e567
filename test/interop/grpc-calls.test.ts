// Successful gRPC calls through an interception: each kind, metadata, large messages and many concurrent calls.
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { Metadata, type ServerDuplexStream } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callBidi, callClientStream, callServerStream, callUnary, readAll, statusOf } from './grpc-client.ts';
import {
  createGrpcProxy,
  createGrpcServer,
  type GrpcHandlers,
  type GrpcProxy,
  type GrpcServer,
} from './grpc-scene.ts';
import { INJECTED } from './interop-scene.ts';

const BIG_BYTES = 4 << 20;
const wide = {
  'grpc.max_receive_message_length': BIG_BYTES + 1_024,
  'grpc.max_send_message_length': BIG_BYTES + 1_024,
};

let proxy: GrpcProxy;
beforeAll(async () => void (proxy = await createGrpcProxy()));
afterAll(() => proxy[Symbol.asyncDispose]());

describe('each kind of call', () => {
  let server: GrpcServer;
  beforeAll(async () => void (server = await createGrpcServer()));
  afterAll(() => server[Symbol.asyncDispose]());

  it('unary', async () => {
    const client = proxy.client(`good.test:${server.port}`);
    expect(String(await callUnary(client, 'one').response)).toBe('one');
    expect(await proxy.recordOf(`good.test:${server.port}`)).toMatchObject({
      protocol: 'h2',
      path: '/test.Echo/Unary',
      outcome: 'injected',
      status: 200,
      injected: ['Authorization'],
    });
  });

  it('server streaming', async () => {
    const client = proxy.client(`good.test:${server.port}`);
    const { messages, status } = await readAll(callServerStream(client, 'a b c'));
    expect(messages.map(String)).toEqual(['a', 'b', 'c']);
    expect(status).toMatchObject({ code: 0 });
  });

  it('client streaming', async () => {
    const client = proxy.client(`good.test:${server.port}`);
    const { call, response } = callClientStream(client);
    for (const word of ['a', 'b', 'c']) call.write(Buffer.from(word));
    call.end();
    expect(String(await response)).toBe('a b c');
  });

  it('in both directions, with a response to each message before the next is sent', async () => {
    const call = callBidi(proxy.client(`good.test:${server.port}`));
    const ended = statusOf(call);
    for (let i = 0; i < 200; i += 1) {
      call.write(Buffer.from(`message ${i}`));
      const [message] = await once(call, 'data');
      expect(String(message)).toBe(`message ${i}`);
    }
    call.end();
    expect(await ended).toMatchObject({ code: 0 });
  });

  it('an empty message, and no message at all', async () => {
    const client = proxy.client(`good.test:${server.port}`);
    expect(await callUnary(client, '').response).toHaveLength(0);
    const call = callBidi(client);
    call.end();
    expect(await readAll(call)).toMatchObject({ messages: [], status: { code: 0 } });
  });

  it('compressed', async () => {
    await using own = await createGrpcServer();
    const target = `good.test:${own.port}`;
    const client = proxy.client(target, { 'grpc.default_compression_algorithm': 2 });
    const text = 'again and '.repeat(10_000);
    expect(String(await callUnary(client, text).response)).toBe(text);
    expect(Number((await proxy.recordOf(target))['bytes_up'])).toBeLessThan(text.length / 10);
  });
});

describe('metadata', () => {
  const bytes = Buffer.from([0, 1, 0x0d, 0x0a, 0xff]);
  const described = (metadata: Metadata): Record<string, unknown> => ({
    text: metadata.get('x-text'),
    bytes: metadata.get('x-raw-bin'),
  });
  const wanted = { text: ['a', 'b'], bytes: [bytes] };
  const filled = (): Metadata => {
    const metadata = new Metadata();
    metadata.add('x-text', 'a');
    metadata.add('x-text', 'b');
    metadata.add('x-raw-bin', bytes);
    return metadata;
  };
  const handlers: Partial<GrpcHandlers> = {
    unary(call, response) {
      call.sendMetadata(filled());
      response(null, call.request, filled());
    },
  };

  it('passes to the server, in the head and in the trailers of the response, binary values as bytes', async () => {
    await using server = await createGrpcServer(handlers);
    const client = proxy.client(`good.test:${server.port}`);
    const call = callUnary(client, 'one', { metadata: filled() });
    const { metadata: trailers } = await call.status;
    const [arrived = new Metadata()] = server.calls;
    // gRPC joins the values of one name with commas at the receiver.
    for (const metadata of [arrived, await call.head, trailers])
      expect(described(metadata)).toEqual({ ...wanted, text: ['a, b'] });
  });

  it("has the rule's credential instead of the agent's own, exactly once", async () => {
    await using server = await createGrpcServer();
    const metadata = new Metadata();
    metadata.add('authorization', 'Bearer mine');
    const call = callUnary(proxy.client(`good.test:${server.port}`), 'one', { metadata });
    await call.response;
    expect(server.calls.map((arrived) => arrived.get('authorization'))).toEqual([[INJECTED]]);
  });

  it('that echoes the credential is masked, in the head and in the trailers', async () => {
    const echoed = (call: { readonly metadata: Metadata }): Metadata => {
      const metadata = new Metadata();
      metadata.add('x-echo', String(call.metadata.get('authorization')));
      return metadata;
    };
    await using server = await createGrpcServer({
      unary(call, response) {
        call.sendMetadata(echoed(call));
        response(null, call.request, echoed(call));
      },
    });
    const call = callUnary(proxy.client(`good.test:${server.port}`), 'one');
    const { metadata: trailers } = await call.status;
    for (const metadata of [await call.head, trailers]) {
      const [echo] = metadata.get('x-echo');
      expect(echo).toMatch(/^\*+$/);
    }
  });
});

describe('large messages', () => {
  it('4 MiB each way, in every kind of call', async () => {
    await using server = await createGrpcServer({ clientStream: countBytes, serverStream: repeat }, wide);
    const client = proxy.client(`good.test:${server.port}`, wide);
    const message = randomBytes(BIG_BYTES);
    expect((await callUnary(client, message).response).equals(message)).toBe(true);

    const { call, response } = callClientStream(client);
    for (let i = 0; i < 3; i += 1) call.write(message);
    call.end();
    expect(String(await response)).toBe(String(3 * BIG_BYTES));

    const { messages, status } = await readAll(callServerStream(client, message));
    expect(status).toMatchObject({ code: 0 });
    expect(messages.map((one) => one.equals(message))).toEqual([true, true, true]);

    const bidi = callBidi(client);
    for (let i = 0; i < 3; i += 1) bidi.write(message);
    bidi.end();
    const echoed = await readAll(bidi);
    expect(echoed.messages.map((one) => one.equals(message))).toEqual([true, true, true]);
  });

  const countBytes: GrpcHandlers['clientStream'] = (call, response) => {
    let bytes = 0;
    call.on('data', (message: Buffer) => (bytes += message.length));
    call.on('end', () => response(null, Buffer.from(String(bytes))));
  };
  const repeat: GrpcHandlers['serverStream'] = (call) => {
    for (let i = 0; i < 3; i += 1) call.write(call.request);
    call.end();
  };
});

describe('many calls at once', () => {
  /** Sends no response before `count` calls have arrived. */
  function together(count: number): GrpcHandlers['bidi'] {
    const waiting: ServerDuplexStream<Buffer, Buffer>[] = [];
    return (call) => {
      call.on('data', (message: Buffer) => {
        call.write(message);
        waiting.push(call);
        if (waiting.length === count) for (const each of waiting) each.end();
      });
    };
  }

  it.each([
    ['on one connection to the server', {}],
    ['when the server allows ten concurrent streams', { 'grpc.max_concurrent_streams': 10 }],
  ])('100 run concurrently, %s', async (_, options) => {
    await using server = await createGrpcServer({ bidi: together(100) }, options);
    const client = proxy.client(`good.test:${server.port}`);
    const ended = Array.from({ length: 100 }, async (_, i) => {
      const call = callBidi(client);
      call.write(Buffer.from(`call ${i}`));
      const { messages, status } = await readAll(call);
      return `${status.code} ${messages.map(String).join()}`;
    });
    expect(await Promise.all(ended)).toEqual(Array.from({ length: 100 }, (_, i) => `0 call ${i}`));
  });

  it('1,000 each get their own message back', async () => {
    await using server = await createGrpcServer();
    const client = proxy.client(`good.test:${server.port}`);
    const words = Array.from({ length: 1_000 }, (_, i) => `call ${i}`);
    const responses = await Promise.all(
      words.map(async (word) => String(await callUnary(client, word).response)),
    );
    expect(responses).toEqual(words);
    expect(new Set(server.calls.map((metadata) => String(metadata.get('authorization'))))).toEqual(
      new Set([INJECTED]),
    );
  });
});

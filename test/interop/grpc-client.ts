// The four kinds of gRPC calls of a client, with their results.
import {
  type CallOptions,
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  type ClientWritableStream,
  Metadata,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import { paths } from './grpc-scene.ts';

export type Ended = { readonly head: Metadata; readonly status: StatusObject };
export type Sent = { readonly metadata?: Metadata; readonly options?: CallOptions };

const identity = (bytes: Buffer): Buffer => bytes;

/** The response or the error, and the head and the status, which every call has. */
export function callUnary(
  client: Client,
  message: Buffer | string,
  { metadata = new Metadata(), options = {} }: Sent = {},
): {
  readonly response: Promise<Buffer>;
  readonly status: Promise<StatusObject>;
  readonly head: Promise<Metadata>;
  cancel(): void;
} {
  const response = Promise.withResolvers<Buffer>();
  const call = client.makeUnaryRequest(
    paths.unary,
    identity,
    identity,
    Buffer.from(message),
    metadata,
    options,
    settle(response),
  );
  response.promise.catch(() => undefined);
  const head = Promise.withResolvers<Metadata>();
  const status = Promise.withResolvers<StatusObject>();
  call.on('metadata', head.resolve).on('status', status.resolve);
  return {
    response: response.promise,
    status: status.promise,
    head: head.promise,
    cancel: () => call.cancel(),
  };
}

export function callServerStream(
  client: Client,
  message: Buffer | string,
  { metadata = new Metadata(), options = {} }: Sent = {},
): ClientReadableStream<Buffer> {
  const bytes = Buffer.from(message);
  return client.makeServerStreamRequest(paths.serverStream, identity, identity, bytes, metadata, options);
}

export function callClientStream(
  client: Client,
  { metadata = new Metadata(), options = {} }: Sent = {},
): { readonly call: ClientWritableStream<Buffer>; readonly response: Promise<Buffer> } {
  const response = Promise.withResolvers<Buffer>();
  response.promise.catch(() => undefined);
  const call = client.makeClientStreamRequest(
    paths.clientStream,
    identity,
    identity,
    metadata,
    options,
    settle(response),
  );
  return { call, response: response.promise };
}

export function callBidi(
  client: Client,
  { metadata = new Metadata(), options = {} }: Sent = {},
): ClientDuplexStream<Buffer, Buffer> {
  return client.makeBidiStreamRequest(paths.bidi, identity, identity, metadata, options);
}

/** Every message of a stream, until its status. */
export async function readAll(
  call: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>,
): Promise<{ readonly messages: readonly Buffer[]; readonly status: StatusObject }> {
  const messages: Buffer[] = [];
  call.on('data', (message: Buffer) => messages.push(message));
  const status = await statusOf(call);
  return { messages, status };
}

/** Every call ends with a status; the error that streams also emit has the same content. */
export function statusOf(
  call: ClientReadableStream<Buffer> | ClientWritableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>,
): Promise<StatusObject> {
  return new Promise((resolve) => {
    call.on('error', () => undefined);
    call.on('status', resolve);
  });
}

function settle(
  response: PromiseWithResolvers<Buffer>,
): (error: ServiceError | null, value?: Buffer) => void {
  return (error, value) => {
    if (error || !value) response.reject(error);
    else response.resolve(value);
  };
}

// gRPC without generated code: a message is its bytes. `Unary` and `Chat` return what they get, `Count` sends five messages.
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';

const PREFIX_BYTES = 5;
const GAP_MS = 100;

export async function respondAsGrpc(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const method = request.url.split('/').at(-1);
  response.writeHead(200, { 'content-type': 'application/grpc' });
  response.addTrailers({ 'grpc-status': '0' });
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of request) {
    rest = Buffer.concat([rest, piece as Buffer]);
    for (let frame = firstFrame(rest); frame !== undefined; frame = firstFrame(rest)) {
      rest = rest.subarray(frame.length);
      if (method !== 'Count') response.write(frame);
    }
  }
  if (method === 'Count') {
    for (const text of ['0', '1', '2', '3', '4']) {
      response.write(frameOf(text));
      await sleep(GAP_MS);
    }
  }
  response.end();
}

function firstFrame(bytes: Buffer): Buffer | undefined {
  if (bytes.length < PREFIX_BYTES) return undefined;
  const end = PREFIX_BYTES + bytes.readUInt32BE(1);
  return bytes.length < end ? undefined : bytes.subarray(0, end);
}

function frameOf(text: string): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([prefix, Buffer.from(text)]);
}

// Whether an upstream's stream ended as it should. node:http2 emits 'end' for END_STREAM and for RST_STREAM(NO_ERROR), and
// later events do not distinguish them. On a reset the stream is closed before push(null).
import type { ClientHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';

const END: unique symbol = Symbol('the upstream has sent END_STREAM');
type NotedStream = ClientHttp2Stream & { [END]?: boolean };

/** Notes how `stream` ends. Must be called before it is read. */
export function noteEnd(stream: ClientHttp2Stream): void {
  stream.push = pushNoting;
}

function pushNoting(this: NotedStream, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk === null && !this.closed) this[END] = true;
  return Readable.prototype.push.call(this, chunk, encoding);
}

/** Whether the upstream has sent END_STREAM. */
export function hasEnd(stream: NotedStream): boolean {
  return stream[END] === true;
}

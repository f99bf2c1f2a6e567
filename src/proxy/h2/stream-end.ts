// How a stream of the host ended. node:http2 says `end` both where all was said and where a reset without an error cut it
// short, and nothing that it tells afterwards is sure. One thing is: a reset closes the stream before its end is pushed.
import type { ClientHttp2Stream } from 'node:http2';

export class StreamEnd {
  /** The host has said that this was all. */
  isWhole = false;

  /** Before the stream is read. */
  constructor(stream: ClientHttp2Stream) {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && !stream.closed) this.isWhole = true;
      return push(chunk, encoding);
    };
  }
}

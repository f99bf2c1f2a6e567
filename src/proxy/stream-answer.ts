// Heads that leave on a client's stream, and refusals: the fields and the body that HTTP/1.1 clients get.
import type { ServerHttp2Stream, ServerStreamResponseOptions } from 'node:http2';
import type { HeaderList } from './header-block.ts';
import { type Refusal, refusalParts } from './refusal.ts';

/** Sends the final head. `endStream`: there is no body; else trailers may follow it. */
export function sendHead(
  stream: ServerHttp2Stream,
  status: number,
  fields: HeaderList,
  options: { readonly endStream: boolean; readonly waitForTrailers?: boolean },
): void {
  // A host's answer without a Date stays without one.
  const all: ServerStreamResponseOptions & { sendDate: boolean } = { ...options, sendDate: false };
  stream.respond([':status', String(status), ...fields], all);
}

/** Answers and ends our side; says how many bytes of body were sent. */
export function answerRefusal(stream: ServerHttp2Stream, refusal: Refusal, method: string): number {
  if (stream.destroyed || stream.closed) return 0;
  const { fields, body } = refusalParts(refusal);
  const endStream = method === 'HEAD';
  const list = fields.flatMap(([name, value]) => [name.toLowerCase(), value]);
  sendHead(stream, refusal.status, list, { endStream });
  if (endStream) return 0;
  stream.end(body);
  return body.length;
}

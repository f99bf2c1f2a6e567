// POST /upload: the part `file` of a multipart body becomes a file of the box, streamed. It takes the place of the old one when
// the whole body has arrived.
import { InvalidInput } from '../../base/domain-error.ts';
import type { Exchange } from '../../base/http/http-server.ts';
import { type HttpResponse, jsonResponse } from '../../base/http/http-response.ts';
import { readMultipart } from '../../base/http/multipart.ts';
import { readBoundary } from '../../base/http/multipart-header.ts';
import { readContent } from '../../base/http/request-content.ts';
import { type Nothing, parseNothing } from '../../box-agent/protocol/messages.ts';
import { AgentError } from '../agents/agent-error.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import type { RunningCall } from '../agents/running-call.ts';
import { readPath } from './request-input.ts';

const GIBIBYTE = 1024 ** 3;
const CONTENT_LIMITS = {
  codings: [],
  maxSentBytes: 16 * GIBIBYTE,
  maxBytes: 16 * GIBIBYTE,
  maxRatio: 1,
  idleMs: 60_000,
  totalMs: 3_600_000,
} as const;
const PART_LIMITS = { headerBytes: 8_192, nameChars: 200, parts: 8 } as const;

export async function upload(
  agents: BoxAgents,
  box: string,
  exchange: Exchange,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const path = readPath(query);
  const boundary = readBoundary(exchange.head.field('content-type'));
  const content = readContent(exchange, CONTENT_LIMITS);
  const channel = await agents.channel(box);
  const call = channel.call({ method: 'write', path }, { parseResult: parseNothing });
  // An agent that takes nothing holds the request up as long as the client waits.
  void exchange.closed.then(() => call.cancel());
  try {
    const failure = call.result.then(
      () => new AgentError('protocol'),
      (error: AgentError) => error,
    );
    const bytes = await writePart(call, failure, readMultipart(content, boundary, PART_LIMITS));
    call.end();
    await call.result;
    return jsonResponse(200, { path, size_bytes: bytes });
  } finally {
    call.cancel();
  }
}

async function writePart(
  call: RunningCall<unknown, Nothing>,
  failure: Promise<AgentError>,
  parts: ReturnType<typeof readMultipart>,
): Promise<number> {
  let bytes: number | undefined;
  let error: AgentError | undefined;
  void failure.then((reason) => (error = reason));
  for await (const part of parts) {
    if (part.name !== 'file') continue;
    if (bytes !== undefined) throw invalid('value_error', 'Send one part with the name file');
    bytes = 0;
    for await (const piece of part.body) {
      await call.write(piece);
      // The rest of the body is not needed any more.
      if (error !== undefined) throw error;
      bytes += piece.length;
    }
  }
  if (bytes === undefined) throw invalid('missing', 'Field required');
  return bytes;
}

function invalid(type: 'missing' | 'value_error', msg: string): InvalidInput {
  return new InvalidInput([{ loc: ['body', 'file'], msg, type }]);
}

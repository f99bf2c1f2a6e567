// GET and HEAD /download: a file of the box, whole or a range of it, with a strong validator. The type is never one that a browser
// shows: what a box holds must not run as a page of this host.
import { createHash } from 'node:crypto';
import type { Exchange } from '../../base/http/http-server.ts';
import { EndedEarly, type HttpResponse } from '../../base/http/http-response.ts';
import {
  type ByteRange,
  encodeRange,
  type FileStat,
  parseFileStat,
  type Nothing,
  parseNothing,
} from '../../box-agent/protocol/messages.ts';
import type { BoxAgents } from '../agents/box-agents.ts';
import { type DataCall, openDataCall } from '../agents/call-data.ts';
import { allowsRange, decideRange, isUnmodified, type Validators } from './byte-range.ts';
import { refuse } from './data-plane-error.ts';
import { readPath } from './request-input.ts';

export async function download(
  agents: BoxAgents,
  box: string,
  exchange: Exchange,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const path = readPath(query);
  const channel = await agents.channel(box);
  const reading = openDataCall(
    channel,
    { method: 'read', path },
    { parseHead: parseFileStat, parseResult: parseNothing },
  );
  // Whatever becomes of the response: the agent holds the file open.
  void exchange.closed.then(() => reading.call.cancel());
  const stat = await reading.call.head;
  return respond(exchange, reading, stat);
}

type Reading = DataCall<FileStat, Nothing>;

function respond({ head }: Exchange, reading: Reading, stat: FileStat): HttpResponse {
  const validators = validatorsOf(stat);
  const fields = {
    ETag: validators.etag,
    'Last-Modified': validators.lastModified,
    'Accept-Ranges': 'bytes',
  };
  const { size } = stat;
  if (isUnmodified(head.field('if-none-match'), validators)) return { status: 304, fields };
  const mayBePart = head.method === 'GET' && allowsRange(head.field('if-range'), validators);
  const decision = decideRange(mayBePart ? head.field('range') : undefined, size);
  if (decision.kind === 'unsatisfiable')
    return refuse(416, 'ReadError', `The range starts behind the end of the file, which has ${size} bytes`, {
      'Content-Range': `bytes */${size}`,
    });
  const range = decision.kind === 'part' ? decision.range : { offset: 0, length: size };
  const { offset, length } = range;
  const all = {
    ...fields,
    'Content-Type': 'application/octet-stream',
    'Content-Length': String(length),
    ...(decision.kind === 'part'
      ? { 'Content-Range': `bytes ${offset}-${offset + length - 1}/${size}` }
      : {}),
  };
  const status = decision.kind === 'part' ? 206 : 200;
  return head.method === 'HEAD'
    ? { status, fields: all }
    : { status, fields: all, body: readRange(reading, range) };
}

/** A file that changes while it is read ends the connection: its length has been announced. */
async function* readRange(
  { call, data }: Reading,
  range: ByteRange,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = range.length;
  try {
    if (left === 0) return;
    await call.write(encodeRange(range));
    for await (const piece of data()) {
      if (piece.length > left) throw new EndedEarly();
      left -= piece.length;
      yield piece;
      if (left === 0) return;
    }
    throw new EndedEarly();
  } finally {
    call.cancel();
  }
}

function validatorsOf({ version, mtimeMs }: FileStat): Validators {
  const digest = createHash('sha256').update(version).digest('base64url').slice(0, 32);
  return { etag: `"${digest}"`, lastModified: new Date(mtimeMs).toUTCString() };
}

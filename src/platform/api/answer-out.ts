// Writes an answer to node's response, with the fields that every answer has, and sees to it that its connection ends as
// it should. It must not know why the answer is what it is.
import { type IncomingMessage, STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { endLingering } from '../../base/lingering-end.ts';
import type { Reply } from './problem.ts';

export type ResponseOptions = {
  readonly requestId: string;
  /** The connection ends with this answer. */
  readonly isLast: boolean;
  /** How long the client may take to read the answer. */
  readonly sendMs: number;
  /** The last byte of it is with the system. */
  onWritten(): void;
};

export async function sendResponse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: Response,
  { requestId, isLast, sendMs, onWritten }: ResponseOptions,
): Promise<void> {
  const content = response.body === null ? undefined : Buffer.from(await response.arrayBuffer());
  if (outgoing.destroyed) return;
  const limit = setTimeout(() => incoming.socket.destroy(), sendMs);
  limit.unref();
  outgoing.once('close', () => clearTimeout(limit));
  // Whether some of the request is still to come, which nobody will read.
  const isUnread = !incoming.complete;
  outgoing.writeHead(response.status, {
    ...commonFields(requestId),
    ...Object.fromEntries(response.headers),
    ...(content === undefined ? {} : { 'content-length': content.length }),
    ...(isLast || isUnread ? { connection: 'close' } : {}),
  });
  if (!isUnread) return void outgoing.end(content, onWritten);
  outgoing.write(content ?? '', (error) => {
    if (!error) onWritten();
  });
  endLingering(incoming, outgoing);
}

/** For a connection on which node gave up before there was a request to answer. */
export function sendRaw(socket: Duplex, { status, body, fields }: Reply, requestId: string): void {
  const text = JSON.stringify(body);
  const all = {
    ...commonFields(requestId),
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...fields,
    connection: 'close',
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`, () =>
    socket.destroy(),
  );
}

function commonFields(requestId: string): Readonly<Record<string, string>> {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
  };
}

// Writes an answer, with the fields that every answer has, and sees to it that its connection ends as it should. It must
// not know why the answer is what it is.
import { type IncomingMessage, STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { endLingering } from '../base/lingering-end.ts';
import type { AdminResponse } from './answer.ts';

export type ResponseOptions = {
  readonly request: string;
  /** The connection ends with this answer. */
  readonly isLast: boolean;
  /** The client may still be sending a body that nobody wants. */
  readonly isBodyUnread: boolean;
  /** How long the client may take to read the answer. */
  readonly sendMs: number;
};

export function sendResponse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: AdminResponse,
  { request, isLast, isBodyUnread, sendMs }: ResponseOptions,
): void {
  if (outgoing.destroyed) return;
  // The socket, not the answer: one that waits behind another on its connection has no socket yet.
  const limit = setTimeout(() => incoming.socket.destroy(), sendMs);
  limit.unref();
  outgoing.once('close', () => clearTimeout(limit));
  outgoing.writeHead(response.status, {
    ...fieldsOf(response, request),
    ...(isLast || isBodyUnread ? { Connection: 'close' } : {}),
  });
  if (!isBodyUnread) return void outgoing.end(response.content?.text);
  outgoing.write(response.content?.text ?? '');
  endLingering(incoming, outgoing);
}

/** For a connection on which Node gave up before there was a request to answer. */
export function sendRawResponse(socket: Duplex, response: AdminResponse, request: string): void {
  const fields = Object.entries({ ...fieldsOf(response, request), Connection: 'close' });
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const reason = STATUS_CODES[response.status] ?? '';
  socket.end(`HTTP/1.1 ${response.status} ${reason}\r\n${lines}\r\n${response.content?.text ?? ''}`, () =>
    socket.destroy(),
  );
}

function fieldsOf({ fields, content }: AdminResponse, request: string): Readonly<Record<string, string>> {
  return {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': request,
    ...fields,
    ...(content === undefined
      ? {}
      : { 'Content-Type': content.type, 'Content-Length': String(Buffer.byteLength(content.text)) }),
  };
}

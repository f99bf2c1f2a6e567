// Responses of the proxy itself over HTTP/1.1: the pages of the reserved host for a request through the proxy, and the files
// of certificates for a request to the proxy port. Each request leaves one record; nothing is sent upstream.
import { buildHead } from '../../http1/head-writer.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import type { RequestPlan } from '../gate/request-plan.ts';
import { type Page, certificatePage, pageAt } from '../local/pages.ts';
import { recordedPath } from '../record.ts';
import { type Refusal, isRefusal, refuse } from '../refusal.ts';
import type { ClientConnection } from './client-connection.ts';

/** The client has been admitted to its sandbox. `rest` came behind the head. */
export function respondAsReservedHost(
  connection: ClientConnection,
  { head, target, framing, endsConnection }: RequestPlan,
  rest: Buffer,
): void {
  const startedMs = performance.now();
  const { method } = head;
  // The end of a body is not looked for.
  const keepAlive = framing.kind === 'none' && !endsConnection;
  if (keepAlive) connection.bufferAhead(rest);
  const about = { method, authority: target.authority.text };
  const page = reservedPage(connection, method, target.path);
  if (isRefusal(page)) return connection.refuse(page, { ...about, keepAlive });
  serve(connection, page, { ...about, path: recordedPath(target.path), keepAlive, startedMs });
  connection.finishExchange(keepAlive);
}

function reservedPage({ scope }: ClientConnection, method: string, path: string): Page | Refusal {
  const { context, clientAddress } = scope;
  const { sandbox, reserved } = context;
  if (!reserved.take(clientAddress)) return refuse('too_many_requests');
  if (method !== 'GET' && method !== 'HEAD') return refuse('reserved_method');
  return pageAt(path, { sandbox, policy: context.policy(), reserved }) ?? refuse('reserved_path');
}

/**
 * Responds to `/ca.pem` and `/ca-bundle.pem` on the proxy port, without a token, because clients may reach only this port and
 * both files are public. False if the request is for something else.
 */
export function respondWithCertificates(connection: ClientConnection, head: RequestHead): boolean {
  const startedMs = performance.now();
  const { method } = head;
  if (method !== 'GET' && method !== 'HEAD') return false;
  const path = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  if (path !== '/ca.pem' && path !== '/ca-bundle.pem') return false;
  const { context, clientAddress } = connection.scope;
  const { recorder, reserved } = context;
  const refusal = recorder.isBlocked
    ? refuse('record_sink_blocked')
    : reserved.takeOnPort(clientAddress)
      ? undefined
      : refuse('too_many_requests');
  const page = certificatePage(path, reserved);
  if (refusal || !page) {
    connection.refuse(refusal ?? refuse('internal_error'), { method });
    return true;
  }
  serve(connection, page, { method, path, keepAlive: false, startedMs });
  connection.end();
  return true;
}

type Served = {
  readonly method: string;
  readonly authority?: string;
  readonly path: string;
  readonly keepAlive: boolean;
  readonly startedMs: number;
};

/** The fields keep a browser from guessing a type, and pages of other origins from embedding the response. */
function serve(connection: ClientConnection, { type, body }: Page, served: Served): void {
  const { keepAlive, startedMs, ...about } = served;
  const length = body.reduce((sum, part) => sum + part.length, 0);
  const fields: (readonly [string, string])[] = [
    ['Content-Type', type],
    ['Content-Length', String(length)],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
  ];
  if (!keepAlive) fields.push(['Connection', 'close']);
  const head = buildHead('HTTP/1.1 200 OK', fields);
  const hasBody = about.method !== 'HEAD';
  const bytesDown = head.length + (hasBody ? length : 0);
  connection.record({ ...about, outcome: 'served', status: 200, bytes_down: bytesDown }, startedMs);
  const { socket } = connection;
  socket.cork();
  socket.write(head);
  // The parts are not copied for each client: the bundle has 200 KB.
  if (hasBody) for (const part of body) socket.write(part);
  socket.uncork();
}

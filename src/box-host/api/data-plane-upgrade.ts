// Connections to the data plane of a box. The platform asks for an upgrade; what follows on the connection are requests of
// clients, which the platform has authenticated and which are all for that box.
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorResponse, type HttpResponse } from '../../base/http/http-response.ts';
import type { Log } from '../../base/log.ts';
import type { Secret } from '../../base/secret.ts';
import type { Boxes } from '../boxes.ts';
import type { DataPlane } from '../data-plane/data-plane.ts';
import { toErrorResponse } from './error-response.ts';

export type UpgradeOptions = {
  readonly token: Secret;
  readonly boxes: Pick<Boxes, 'requireAgent'>;
  readonly plane: DataPlane;
  readonly log: Log;
};

/** In the field Upgrade. */
const PROTOCOL = 'sallyport-data-plane';
const PATH = /^\/v1\/boxes\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/data-plane$/;

export function serveUpgrades(listener: Server, options: UpgradeOptions): void {
  listener.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const rejection = check(incoming, options);
    if (typeof rejection !== 'string') return send(socket, rejection);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL}\r\n\r\n`);
    if (head.length > 0) socket.unshift(head);
    options.plane.serve(socket, rejection);
    return undefined;
  });
}

/** The id of the box, or why there is no connection to it. */
function check(
  { headers, url = '' }: IncomingMessage,
  { token, boxes, log }: UpgradeOptions,
): string | HttpResponse {
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
  if (!token.equals(bearer)) return errorResponse(401, 'wrong_token', 'The token is missing or wrong');
  const id = PATH.exec(url)?.[1];
  if (id === undefined || headers.upgrade !== PROTOCOL)
    return errorResponse(404, 'no_route', 'There is no such path and protocol');
  try {
    boxes.requireAgent(id);
    return id;
  } catch (error) {
    return toErrorResponse(error, log);
  }
}

function send(socket: Duplex, { status, fields = {}, body = '' }: HttpResponse): void {
  const text = String(body);
  const all = { ...fields, 'Content-Length': String(Buffer.byteLength(text)), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`, () =>
    socket.destroy(),
  );
}

// Connections into boxes. The platform asks for an upgrade; what follows are requests of clients to the data plane of the box, or
// the bytes of a connection to one of its ports. The platform has authenticated the clients.
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Server, Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { FramedSocket } from '../../base/http/framed-socket.ts';
import { errorResponse, type HttpResponse } from '../../base/http/http-response.ts';
import type { Log } from '../../base/log.ts';
import type { Secret } from '../../base/secret.ts';
import type { Boxes } from '../boxes.ts';
import type { DataPlane } from '../data-plane/data-plane.ts';
import type { BoxPorts } from './box-ports.ts';
import { toErrorResponse } from './error-response.ts';

export type UpgradeOptions = {
  readonly token: Secret;
  readonly boxes: Pick<Boxes, 'requireAgent'>;
  readonly plane: DataPlane;
  readonly ports: BoxPorts;
  readonly log: Log;
};

/** In the field Upgrade. */
const DATA_PLANE = 'sallyport-data-plane';
const PORT = 'sallyport-port';
const PATH =
  /^\/v1\/boxes\/(?<box>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/(?:data-plane|ports\/(?<port>[1-9]\d{0,4}))$/;

type Place = { readonly box: string; readonly port: number | undefined };

export function serveUpgrades(listener: Server, options: UpgradeOptions): void {
  listener.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    if (head.length > 0) socket.unshift(head);
    connect(incoming, socket, options).catch((error: unknown) =>
      send(socket, toErrorResponse(error, options.log)),
    );
  });
}

async function connect(
  { headers, url }: IncomingMessage,
  socket: Socket,
  { token, boxes, plane, ports }: UpgradeOptions,
): Promise<void> {
  const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
  if (!token.equals(bearer))
    return send(socket, errorResponse(401, 'wrong_token', 'The token is missing or wrong'));
  const place = parsePlace(url, headers.upgrade);
  if (place === undefined)
    return send(socket, errorResponse(404, 'no_route', 'There is no such path and protocol'));
  const { box, port } = place;
  boxes.requireAgent(box);
  if (port === undefined) {
    accept(socket, DATA_PLANE);
    plane.serve(socket, box);
  } else join(socket, await ports.connect(box, port));
}

function parsePlace(url = '', protocol: string | undefined): Place | undefined {
  const { box, port } = PATH.exec(url)?.groups ?? {};
  if (box === undefined || protocol !== (port === undefined ? DATA_PLANE : PORT)) return undefined;
  if (port === undefined) return { box, port };
  return Number(port) > 65_535 ? undefined : { box, port: Number(port) };
}

function accept(socket: Duplex, protocol: string): void {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
}

function join(socket: Socket, connection: Duplex): void {
  // The platform has left while the box was asked.
  if (socket.destroyed) return void connection.destroy();
  accept(socket, PORT);
  const framed = new FramedSocket(socket);
  // What breaks on one side breaks on the other, in both directions.
  const onEnd = (error: unknown): void => {
    if (!error) return;
    framed.destroy();
    connection.destroy();
  };
  pipeline(framed, connection, onEnd);
  pipeline(connection, framed, onEnd);
}

function send(socket: Duplex, { status, fields = {}, body = '' }: HttpResponse): void {
  const text = String(body);
  const all = { ...fields, 'Content-Length': String(Buffer.byteLength(text)), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`, () =>
    socket.destroy(),
  );
}

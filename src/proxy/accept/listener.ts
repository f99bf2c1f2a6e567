// A proxy port: accepts client connections within their limits, finds the sandbox of each, responds to health probes, and
// starts CONNECT tunnels and plain requests. On shutdown it lets running exchanges finish.
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { KEEP_ALIVE_PROBE_MS } from '../../base/connect-race.ts';
import { describeBug } from '../../base/log.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { requestFraming } from '../../http1/framing.ts';
import type { RequestHead } from '../../http1/head-parser.ts';
import { buildHead } from '../../http1/head-writer.ts';
import type { Admission } from './admission.ts';
import { ClientConnection } from '../h1/client-connection.ts';
import { isClientAllowed, presentedToken } from './client-filter.ts';
import { startConnect } from '../tunnel/connect.ts';
import type { ConnectionBudget, CountedConnection } from './connection-budget.ts';
import type { ConnectionScope, OpenConnection, ProxyContext } from '../context.ts';
import { closeAtOnce } from '../splice.ts';
import { startExchange } from '../h1/exchange.ts';
import { respondWithCertificates } from '../h1/local-response.ts';
import { refuse } from '../refusal.ts';

export type Listener = {
  readonly address: string;
  readonly port: number;
  readonly connectionCount: number;
  /** Stops accepting, drains the open connections, and resolves when all are closed, at the latest after `drainMs`. */
  close(drainMs: number): Promise<void>;
};

const SOCKET_OPTIONS = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS,
} as const;

const BACKLOG = 1024;

/** An address (port 0: any free one), or a socket that was opened elsewhere. */
export type ListenAt =
  | { readonly host: string; readonly port: number }
  | {
      readonly handle: object;
      /** Throws if the socket must not be used; called before a client is accepted. */
      vet(): void;
    };

export async function createListener(
  at: ListenAt,
  admission: Admission,
  budget: ConnectionBudget,
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const server = createServer(SOCKET_OPTIONS, (socket) => {
    sockets.add(socket);
    accept(socket, admission, budget, () => sockets.delete(socket));
  });
  await listen(server, at);
  // A failed accept (no buffers, no file descriptors) loses one connection. It must not end the process.
  server.on('error', (error) => admission.own.log.error(describeBug(error), 'accept failed'));
  const { address, port } = server.address() as AddressInfo;
  return {
    address,
    port,
    get connectionCount() {
      return sockets.size;
    },
    async close(drainMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const connection of connectionsOf(admission)) connection.drain();
      const deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
        for (const connection of connectionsOf(admission)) closeAtOnce(connection);
      }, drainMs);
      await closed;
      await Promise.all(connectionsOf(admission).map(({ closed }) => closed));
      clearTimeout(deadline);
    },
  };
}

function connectionsOf(admission: Admission): OpenConnection[] {
  return [...admission.sandboxes()].flatMap((context) => [...context.connections]);
}

async function listen(server: Server, at: ListenAt): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  if ('handle' in at) {
    server.listen(at.handle, BACKLOG, resolve);
    try {
      at.vet();
    } catch (error) {
      server.close();
      reject(error);
    }
  } else server.listen({ host: at.host, port: at.port, backlog: BACKLOG }, resolve);
  await promise;
  server.off('error', reject);
}

function accept(socket: Socket, admission: Admission, budget: ConnectionBudget, onClose: () => void): void {
  const context = admission.own;
  const scope: ConnectionScope = {
    context,
    scheme: 'http',
    tunnel: undefined,
    clientAddress: socket.remoteAddress,
  };
  const counted: CountedConnection = {
    listener: admission,
    reject() {
      if (socket.writableEnded) socket.destroy();
      else connection.refuse(refuse('too_many_connections'));
    },
    cut: () => socket.destroy(),
  };
  let isAdmitted = false;
  const connection = new ClientConnection(socket, scope, (_, head, rest) => {
    const admitted = admit(connection, admission, head, rest);
    if (!admitted) return;
    if (!isAdmitted) {
      isAdmitted = true;
      budget.markAuthenticated(counted);
      if (refuseSurplus(connection, admitted, { head, share: budget.share }))
        return budget.addRejected(counted);
    }
    start(connection, head, rest);
  });
  socket.on('close', () => {
    budget.remove(counted);
    onClose();
  });
  const isAllowed = isClientAllowed(socket.remoteAddress, admission.allowClients);
  if (isAllowed && !context.isDraining()) return budget.add(counted);
  budget.addRejected(counted);
  connection.refuse(refuse(isAllowed ? 'shutting_down' : 'client_denied'));
}

/** The sandbox of the client. Undefined if the request has its response: that of a probe, a certificate, or a 407. */
function admit(
  connection: ClientConnection,
  admission: Admission,
  head: RequestHead,
  rest: Buffer,
): ProxyContext | undefined {
  const isOriginForm = head.bytes[head.targetStart] === 0x2f;
  if (isOriginForm && (respondToProbe(connection, head) || respondWithCertificates(connection, head)))
    return undefined;
  const context = admission.admit(presentedToken(head));
  if (context && connection.admit(context)) return context;
  refuseUnauthenticated(connection, head, rest);
  return undefined;
}

/**
 * True if the connection that was just admitted is one more than its sandbox may have. This is checked once for each
 * connection: a surplus one, which stays open for a moment, must not end the ones that were there before it.
 */
function refuseSurplus(
  connection: ClientConnection,
  context: ProxyContext,
  { head, share }: { readonly head: RequestHead; readonly share: number },
): boolean {
  if (context.clients.size <= Math.min(context.limits.maxConnections, share)) return false;
  context.clients.delete(connection.socket);
  connection.refuse(refuse('too_many_connections'), { method: head.method });
  return true;
}

function start(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  if (head.method === 'CONNECT') startConnect(connection, head, rest);
  else startExchange(connection, head, rest);
}

/** The connection stays open after the 407, so that the client can retry on it (Java does), unless bytes follow the head. */
function refuseUnauthenticated(connection: ClientConnection, head: RequestHead, rest: Buffer): void {
  const framing = requestFraming(head);
  const keepAlive = rest.length === 0 && head.minor === 1 && !isHeadError(framing) && framing.kind === 'none';
  connection.refuse(refuse('proxy_auth_required'), { method: head.method, keepAlive });
}

/** Responds to `/healthz` and `/readyz`, because probes may reach only this port. The response has no details. */
function respondToProbe(connection: ClientConnection, head: RequestHead): boolean {
  if (head.method !== 'GET' && head.method !== 'HEAD') return false;
  const path = head.bytes.toString('latin1', head.targetStart, head.targetEnd);
  if (path !== '/healthz' && path !== '/readyz') return false;
  const isOk = path === '/healthz' || connection.scope.context.isReady();
  const body = head.method === 'HEAD' ? '' : isOk ? 'ok\n' : 'not ready\n';
  const bytes = buildHead(`HTTP/1.1 ${isOk ? '200 OK' : '503 Service Unavailable'}`, [
    ['Content-Type', 'text/plain'],
    ['Content-Length', String(isOk ? 3 : 10)],
    ['Connection', 'close'],
  ]);
  connection.socket.write(Buffer.concat([bytes, Buffer.from(body)]));
  connection.end();
  return true;
}

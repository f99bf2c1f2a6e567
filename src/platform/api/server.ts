// The API on its listener: every bound on time, bytes and numbers is set here. It must not know what a route does.
import { createServer } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { type ListenAddress, listenerUrl } from '../../base/listen-address.ts';
import { refusal } from './problem.ts';
import { Reception, type ReceptionOptions } from './reception.ts';

export type Server = {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Requests that are not answered yet. */
  readonly running: number;
  /** Stops accepting and lets running requests end, at most for the drain time; each answer ends its connection. */
  close(): Promise<void>;
};

export type ServerOptions = ReceptionOptions & { readonly listen: ListenAddress };

/** Throws an Error that says where it cannot listen. */
export async function openServer(options: ServerOptions): Promise<Server> {
  const { limits, log } = options;
  const reception = new Reception(options);
  const server = createServer(
    {
      maxHeaderSize: limits.headBytes,
      headersTimeout: Math.min(10_000, limits.requestMs),
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(limits.requestMs / 10)),
      // Answered by ourselves, with the fields that every answer has.
      requireHostHeader: false,
    },
    (incoming, outgoing) => reception.receive(incoming, outgoing),
  );
  server.maxConnections = limits.connections;
  // Asked for while it is there: node keeps it then, also when the client cuts the connection behind his request. Where
  // it has gone already nobody is served, for no event may lack it.
  server.on('connection', (socket: Socket) => {
    if (socket.remoteAddress === undefined) socket.destroy();
  });
  server.on('checkContinue', (incoming, outgoing) => reception.receive(incoming, outgoing));
  server.on('checkExpectation', (incoming, outgoing) =>
    reception.receive(incoming, outgoing, refusal(417, 'Expect may say 100-continue alone')),
  );
  server.on('connect', (incoming, socket) => reception.refuseConnect(incoming, socket as Socket));
  server.on('clientError', (error, socket) => reception.giveUp(error, socket as Socket));
  await listenAt(server, options.listen, 'listen or SALLYPORT_PLATFORM_LISTEN');
  // As when no descriptor is left for a connection: those that stand go on.
  server.on('error', (error: NodeJS.ErrnoException) => log.warn({ error: error.code }, 'listener'));
  const { address, port } = server.address() as AddressInfo;

  return {
    url: listenerUrl({ address, port }),
    get running() {
      return reception.running;
    },
    async close() {
      // Not the close of an HTTP server, which ends connections whose next request may be on its way.
      const closed = new Promise<void>((done) => NetServer.prototype.close.call(server, () => done()));
      const limit = Promise.withResolvers<void>();
      const timer = setTimeout(limit.resolve, limits.drainMs);
      await Promise.race([reception.drain(), limit.promise]);
      clearTimeout(timer);
      server.closeAllConnections();
      await closed;
      // It says that the server is closed, and ends its timer.
      server.close(() => undefined);
    },
  };
}

/** Throws an Error that names the address, and `setting` as what to change. */
export async function listenAt(
  server: NetServer,
  { host, port }: ListenAddress,
  setting: string,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = ({ code = 'an unknown error' }: NodeJS.ErrnoException): void =>
    reject(new Error(`the platform cannot listen at ${host}:${port} (${code}): change ${setting}`));
  server.once('error', onError);
  server.listen({ host, port }, resolve);
  await promise;
  server.off('error', onError);
}

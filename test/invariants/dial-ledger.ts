// Records every TCP connection that this process opens, at the last step before the kernel, and redirects all of them to
// loopback: a test may name a forbidden address, and no packet is sent there even if the code under test is wrong.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';
import { constants } from 'node:os';

export type DialLedger = Disposable & {
  /** `address:port` in the order of the attempts. */
  readonly attempts: readonly string[];
  /** For each connection that a server of this process accepted: its local port, 0 for a unix socket. */
  readonly accepted: readonly number[];
};

/** The port on 127.0.0.1 that stands in for a host on the internet. */
export type Route = (address: string, port: number) => number | undefined;

type Connect = (request: object, address: string, port: number, ...rest: unknown[]) => number;
type Handles = Record<'connect' | 'connect6', Connect>;

const LOOPBACK = /^(?:127\.|::1$)/;

/** Throws if the ledger cannot observe connections. */
export async function openDialLedger(route: Route = () => undefined): Promise<DialLedger> {
  const attempts: string[] = [];
  const accepted: number[] = [];
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const handles = handlesOf(server);
  const { connect: connect4, connect6 } = handles;
  const watched = (original: Connect): Connect =>
    function (this: object, request, address, port, ...rest) {
      attempts.push(`${address}:${port}`);
      const local = route(address, port);
      if (local !== undefined) return connect4.call(this, request, '127.0.0.1', local, ...rest);
      if (!LOOPBACK.test(address)) return -constants.errno.ECONNREFUSED;
      return original.call(this, request, address, port, ...rest);
    };
  Object.assign(handles, { connect: watched(connect4), connect6: watched(connect6) });
  const onAccepted = (message: unknown): void => {
    accepted.push((message as { readonly socket: Socket }).socket.localPort ?? 0);
  };
  subscribe('net.server.socket', onAccepted);
  const { port } = server.address() as AddressInfo;
  await once(connect(port, '127.0.0.1').resume(), 'close');
  server.close();
  if (attempts.length !== 1 || accepted[0] !== port) throw new Error('the ledger sees nothing');
  return {
    attempts,
    accepted,
    [Symbol.dispose]() {
      Object.assign(handles, { connect: connect4, connect6 });
      unsubscribe('net.server.socket', onAccepted);
    },
  };
}

/** The prototype of all TCP handles of the process. Node has no public API that shows every dialled address. */
function handlesOf(server: Server): Handles {
  const { _handle: handle } = server as unknown as { readonly _handle: object };
  return Object.getPrototypeOf(handle) as Handles;
}

// The proxy's ends of the connections that clients open: a client cannot see whether the proxy has closed one.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';

const CHANNEL = 'net.server.socket';

export type AcceptedSockets = Disposable & {
  readonly count: number;
  /** How many of them are not closed. */
  readonly open: number;
  /** Resolves when all that were accepted so far are closed. */
  gone(): Promise<void>;
};

/** Collects the sockets that `port` accepts from here on. */
export function keepAccepted(port: number): AcceptedSockets {
  const kept: Socket[] = [];
  const onSocket = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort === port) kept.push(socket);
  };
  subscribe(CHANNEL, onSocket);
  return {
    get count() {
      return kept.length;
    },
    get open() {
      return kept.filter(({ closed }) => !closed).length;
    },
    async gone() {
      await Promise.all(kept.map((socket) => socket.closed || once(socket, 'close')));
    },
    [Symbol.dispose]: () => unsubscribe(CHANNEL, onSocket),
  };
}

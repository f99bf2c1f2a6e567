// The two connections of one client of a database bridge, from the startup message on: what either side sends reaches the other one, and
// the end of either ends both.
import type { Socket } from 'node:net';
import { createKeyReader } from './backend-key.ts';

export type Relayed = {
  /** By which the client can cancel a query of its own. */
  onKey(key: string): void;
  /** The server has let the client in: a time limit for that ends here. */
  onReady(): void;
  /** Called once, when both connections are closed. */
  onClosed(): void;
};

/** Of a connection that ended and still has something to send. */
const LINGER_MS = 10_000;

export function relay(client: Socket, server: Socket, { onKey, onReady, onClosed }: Relayed): void {
  const keys = createKeyReader();
  const onGreeting = (chunk: Buffer): void => {
    const key = keys.read(chunk);
    if (key !== undefined) onKey(key);
    if (!keys.isDone) return;
    server.off('data', onGreeting);
    onReady();
  };
  server.on('data', onGreeting);
  // Back-pressure holds: who does not read is not sent more, and the other side waits.
  client.pipe(server);
  server.pipe(client);
  let open = 2;
  const closeWith = (other: Socket) => () => {
    open -= 1;
    if (open === 0) return onClosed();
    // What was read is still written, and a peer that does not take it is not waited for.
    other.end();
    const timer = setTimeout(() => other.destroy(), LINGER_MS);
    other.once('close', () => clearTimeout(timer));
  };
  client.once('close', closeWith(server));
  server.once('close', closeWith(client));
}

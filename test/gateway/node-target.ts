// A target of the gateway on node:http.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

export async function openNodeTarget(
  handle: NodeHandler,
): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer(handle);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

// Boxes on a fake runtime behind a real gateway: what would be the data plane of a box is a server of this process.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { duplexPair } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { watchRevocations } from '../../../../src/platform/identity/revocation-notices.ts';
import { openNotifications } from '../../../../src/platform/store/postgres/notifications.ts';
import { RuntimeError } from '../../../../src/platform/runtime/contract.ts';
import { type BoxScene, createBoxScene } from '../box-scene.ts';

export type Seen = {
  readonly box: string;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
};

export type GatewayScene = BoxScene & {
  /** The requests that reached a data plane. */
  readonly seen: readonly Seen[];
  /** How it responds; `ok` otherwise. */
  respond: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Resolves with the next WebSocket that is opened to a box. */
  nextSocket(): Promise<WebSocket>;
  fetch(url: string, init?: RequestInit & { readonly key?: string }): Promise<Response>;
  dial(url: string, key?: string): WebSocket;
};

export async function createGatewayScene(
  gateway: object = {},
  sandboxes: object = {},
): Promise<GatewayScene> {
  const scene = await createBoxScene({ sandboxes: { runtime: 'bubblewrap', ...sandboxes }, gateway });
  const { api, runtime } = scene;
  const fail = (): undefined => undefined;
  const { connection } = api.database;
  const notifications = openNotifications({ connection, onLost: fail, onError: fail });
  await watchRevocations(notifications, (id) => void api.admission.streams.sweep(id));
  const seen: Seen[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const servers: Server[] = [];
  const close = scene[Symbol.asyncDispose].bind(scene);
  const made: GatewayScene = Object.assign(scene, {
    seen,
    respond: (_: IncomingMessage, outgoing: ServerResponse): void => void outgoing.end('ok'),
    nextSocket: async () => ((await once(sockets, 'connection')) as [WebSocket])[0],
    fetch(url: string, { key = scene.key, ...init }: RequestInit & { readonly key?: string } = {}) {
      const headers = { ...(key === '' ? {} : { 'X-Api-Key': key }), Connection: 'close', ...init.headers };
      return fetch(url, { redirect: 'manual', ...init, headers } as RequestInit);
    },
    dial: (url: string, key = scene.key) =>
      new WebSocket(`${url.replace('http', 'ws')}/execute/ws`, { headers: { 'X-Api-Key': key } }).on(
        'error',
        fail,
      ),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      for (const server of servers) server.closeAllConnections();
      await close();
      await notifications.close();
    },
  });
  runtime.connect = async (box, to) => {
    await runtime.onCall({ call: 'connect', id: box });
    if (to !== 'data-plane') throw new RuntimeError('not_supported', 'No ports');
    const server = createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      seen.push({ box, method, url, headers });
      made.respond(incoming, outgoing);
    });
    servers.push(server);
    server.on('upgrade', (incoming, socket, head) =>
      sockets.handleUpgrade(incoming, socket, head, (one) => sockets.emit('connection', one)),
    );
    const [ours, theirs] = duplexPair();
    server.emit('connection', theirs);
    return ours;
  };
  return made;
}

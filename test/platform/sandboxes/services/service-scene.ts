// Services of boxes on a fake runtime behind a real gateway: what would listen in a box is a server of this process.
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import { duplexPair } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Runtime } from '../../../../src/platform/runtime/contract.ts';
import { watchRevocations } from '../../../../src/platform/identity/revocation-notices.ts';
import { openNotifications } from '../../../../src/platform/store/postgres/notifications.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';

export const DOMAIN = 'boxes.test';

export type Seen = {
  readonly box: string;
  readonly port: number;
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
};
export type Got = {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
};
export type ServiceUrl = {
  readonly service_url: string;
  readonly browser_url: string;
  readonly token: string;
  readonly expires_at: string;
};
type Call = Pick<RequestOptions, 'method' | 'headers'> & { readonly host?: string };

export type ServiceScene = BoxScene & {
  /** Of the gateway. */
  readonly port: number;
  /** The requests that reached a service. */
  readonly seen: readonly Seen[];
  respond: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  nextSocket(): Promise<WebSocket>;
  serviceUrl(box: string, port?: number, more?: object): Promise<ServiceUrl>;
  /** Sends one request to the gateway, to any host. */
  get(path: string, call?: Call): Promise<Got>;
  /** Resolves with the response as it begins. */
  open(path: string, call?: Call): Promise<IncomingMessage>;
};

/** With the runtime of real boxes where one is given. */
export async function createServiceScene(real?: Runtime): Promise<ServiceScene> {
  const settings = { sandboxes: { runtime: 'bubblewrap' }, gateway: { domain: DOMAIN } };
  const scene = await createBoxScene(settings, real);
  const { api, runtime } = scene;
  const ignore = (): undefined => undefined;
  const notifications = openNotifications({
    connection: api.database.connection,
    onLost: ignore,
    onError: ignore,
  });
  await watchRevocations(notifications, (id) => void api.admission.streams.sweep(id));
  const seen: Seen[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const { id, dataplane_url } = await scene.create({});
  const port = Number(new URL(dataplane_url).port);
  await scene.ask('DELETE', `${BOXES}/${id}`);
  const close = scene[Symbol.asyncDispose].bind(scene);
  const made: ServiceScene = Object.assign(scene, {
    ...{ port, seen },
    respond: (_: IncomingMessage, outgoing: ServerResponse): void => void outgoing.end('ok'),
    nextSocket: async () => ((await once(sockets, 'connection')) as [WebSocket])[0],
    async serviceUrl(box: string, ofPort = 8000, more: object = {}) {
      const { status, body, text } = await scene.ask('POST', `${BOXES}/${box}/service-url`, {
        port: ofPort,
        ...more,
      });
      if (status !== 200) throw new Error(`${status} ${text}`);
      return body as unknown as ServiceUrl;
    },
    async get(path: string, call: Call = {}) {
      const response = await made.open(path, call);
      const text = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
      return { status: response.statusCode, headers: response.headers, text };
    },
    async open(path: string, { host = 'gateway.test', headers, ...call }: Call = {}) {
      const fields = { ...(headers as object), Host: host };
      const sent = request({ host: '127.0.0.1', port, path, agent: false, ...call, headers: fields });
      const response = once(sent, 'response');
      // A response that is cut is an error of the request too.
      sent.on('error', () => undefined).end();
      return ((await response) as [IncomingMessage])[0];
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      await close();
      await notifications.close();
    },
  });
  runtime.connect = async (box, to) => {
    await runtime.onCall({ call: 'connect', id: box });
    if (to === 'data-plane') throw new Error('no data plane here');
    const server = createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      seen.push({ box, port: to.port, method, url, headers });
      made.respond(incoming, outgoing);
    });
    server.on('upgrade', (incoming, socket, head) => {
      seen.push({ box, port: to.port, method: 'GET', url: incoming.url, headers: incoming.headers });
      sockets.handleUpgrade(incoming, socket, head, (one) => sockets.emit('connection', one));
    });
    const [ours, theirs] = duplexPair();
    server.emit('connection', theirs);
    return ours;
  };
  return made;
}

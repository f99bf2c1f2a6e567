// The clients of a soak: injected requests, tunnels, hosts with a callback, WebSockets and attacks, a fixed number of each in
// twenty. Each checks its own response and returns errors as text.
import { WebSocket } from 'ws';
import { messageRows } from '../test/attacks/message/message-rows.ts';
import { openTunnel, secureTunnel } from '../test/e2e/tunnel.ts';
import { WireClient } from '../test/support/wire-client.ts';

export type Kind = 'injected' | 'tunnel' | 'callback' | 'websocket' | 'attack';
export type Route = {
  readonly port: number;
  readonly caPem: string;
  readonly securePort: number;
  readonly clearPort: number;
};
export type Traffic = AsyncDisposable & {
  /** Runs the nth activity, counted from 0; returns what was wrong with it. */
  act(n: number): Promise<{ readonly kind: Kind; readonly error: string | undefined }>;
};

/** Of twenty: 60 % injected, 20 % tunnels, 10 % callbacks, 5 % WebSocket, 5 % attacks. */
const mix: readonly Kind[] = [
  ...['injected', 'injected', 'tunnel', 'injected', 'callback'],
  ...['injected', 'injected', 'tunnel', 'injected', 'websocket'],
  ...['injected', 'injected', 'tunnel', 'injected', 'callback'],
  ...['injected', 'injected', 'tunnel', 'injected', 'attack'],
] as Kind[];
const USES = 50;
/** Per host: a burst on a busy machine must not leave many open descriptors. */
const MAX_IDLE = 4;
/** The callback of each is called once a minute; in between, its response is cached. */
const CALLED_HOSTS = 30;
const ATTACK_MS = 200;
const attacks: readonly string[] = messageRows
  .filter(({ script }) => (script.policy ?? 'bearer') === 'bearer')
  .map(({ script: { send } }) =>
    typeof send === 'string' ? send : send.filter((step) => typeof step === 'string').join(''),
  );

type Kept = { readonly client: WireClient; uses: number };

export function createTraffic(route: Route): Traffic {
  const connections = createConnections(route);
  const acts = createActs(route, connections);
  return {
    async act(n) {
      const kind = mix[n % mix.length] ?? 'injected';
      try {
        return { kind, error: await acts[kind](n) };
      } catch (error) {
        return { kind, error: error instanceof Error ? error.message : String(error) };
      }
    },
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

type Connections = AsyncDisposable & {
  connectTo(name: string): Promise<WireClient>;
  /** Lends a connection that stays open for the next use, and is renewed after some. */
  borrowed<T>(host: string, use: (client: WireClient) => Promise<T>): Promise<T>;
};

function createConnections(route: Route): Connections {
  const idle = new Map<string, Kept[]>();

  function connectTo(name: string): Promise<WireClient> {
    return WireClient.connectThrough(route.port, `${name}:${route.securePort}`, { ca: route.caPem, name });
  }

  return {
    connectTo,
    async borrowed(host, use) {
      const kept = idle.get(host)?.pop() ?? { client: await connectTo(host), uses: 0 };
      try {
        return await use(kept.client);
      } catch (error) {
        kept.uses = USES;
        throw error;
      } finally {
        kept.uses += 1;
        const others = idle.get(host) ?? [];
        if (kept.uses >= USES || others.length >= MAX_IDLE) await kept.client[Symbol.asyncDispose]();
        else idle.set(host, [...others, kept]);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { client } of [...idle.values()].flat()) await client[Symbol.asyncDispose]();
    },
  };
}

async function ask(client: WireClient, host: string, wanted: string, n: number): Promise<string | undefined> {
  await client.send(`GET /soak/${n}?q=${n} HTTP/1.1\r\nHost: ${host}\r\nX-Nonce: n${n}\r\n\r\n`);
  const { head, text } = await client.readResponse();
  return head.status === 200 && text === `${wanted} n${n}` ? undefined : `${head.status} ${text}`;
}

type Act = (n: number) => Promise<string | undefined>;

function createActs(route: Route, { borrowed, connectTo }: Connections): Readonly<Record<Kind, Act>> {
  let attacked = 0;
  return {
    injected: (n) =>
      borrowed('api.test', (client) => ask(client, `api.test:${route.securePort}`, 'injected', n)),
    callback(n) {
      const host = `c${Math.floor(n / 10) % CALLED_HOSTS}.called.test`;
      return borrowed(host, (client) => ask(client, `${host}:${route.securePort}`, 'called', n));
    },
    async tunnel(n) {
      await using client = await WireClient.connect(route.port);
      const authority = `other.test:${route.clearPort}`;
      const { status } = await client.openTunnel(authority);
      return status === 200 ? await ask(client, authority, 'plain', n) : `CONNECT ${status}`;
    },
    async websocket(n) {
      const authority = `api.test:${route.securePort}`;
      const raw = await openTunnel(route.port, authority);
      const socket = await secureTunnel(raw, 'api.test', route.caPem);
      return echoOver(new WebSocket(`wss://${authority}/`, { createConnection: () => socket }), `n${n}`);
    },
    async attack() {
      const nth = attacked++;
      // Each row alternates between plain connection and tunnel.
      const entry = (nth + Math.floor(nth / attacks.length)) % 2 === 0 ? 'plain' : 'tunnel';
      const bytes = fill(attacks[nth % attacks.length] ?? '', entry, route);
      await using client =
        entry === 'plain' ? await WireClient.connect(route.port) : await connectTo('api.test');
      client.send(bytes).catch(() => undefined);
      await within(ATTACK_MS, client.finished);
      client.reset();
      const [, code] = /^X-Sallyport-Error: (internal_error)\r$/m.exec(client.transcript) ?? [];
      return code;
    },
  };
}

async function echoOver(socket: WebSocket, text: string): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.on('error', reject);
  socket.once('open', () => socket.send(text));
  socket.once('message', (message: Buffer) => resolve(message.toString()));
  socket.once('close', (code) => reject(new Error(`closed with ${code}`)));
  const echoed = await promise;
  const closed = new Promise((done) => socket.once('close', done));
  socket.close();
  await closed;
  return echoed === text ? undefined : echoed;
}

/** The placeholders of message-script.ts. */
function fill(bytes: string, entry: 'plain' | 'tunnel', { securePort, clearPort }: Route): string {
  const port = String(entry === 'plain' ? clearPort : securePort);
  return bytes
    .replaceAll('{AT}', entry === 'plain' ? `http://api.test:${port}` : '')
    .replaceAll('{HOST}', `api.test:${port}`)
    .replaceAll('{PORT}', port)
    .replaceAll('{EVIL}', `other.test:${clearPort}`)
    .replaceAll('{EVIL_PORT}', String(clearPort));
}

async function within(ms: number, event: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([event, promise]);
  clearTimeout(timer);
}

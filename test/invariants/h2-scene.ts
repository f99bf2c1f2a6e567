// The scene of the invariant tests over HTTP/2: the proxy of credential-scene.ts, an origin that speaks both
// versions and stores every frame, and raw clients inside intercepted tunnels. It checks nothing itself.
import { type H2Origin, type H2OriginOptions, createH2Origin } from '../support/h2-origin.ts';
import type { H2Request } from '../support/h2-exchange.ts';
import { type H2Response, type H2ClientOptions, H2WireClient } from '../support/h2-wire-client.ts';
import type { SentField } from '../support/hpack.ts';
import { type TlsOptions, WireClient } from '../support/wire-client.ts';
import type { TestSidecar } from '../support/test-sidecar.ts';
import { type SceneOptions, createSceneProxy, publicAuthority } from './credential-scene.ts';

export type H2Scene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly origin: H2Origin;
  /** `name:port` of the origin. */
  at(name?: string): string;
  /** A client inside the intercepted tunnel to `name`; its ALPN list defaults to `h2` only. */
  client(
    name?: string,
    options?: H2ClientOptions & { readonly tls?: Partial<TlsOptions> },
  ): Promise<H2WireClient>;
  /** A client on the proxy port that has sent nothing. */
  wire(): Promise<WireClient>;
  /** Closes the connections of all these clients. */
  leave(): Promise<void>;
};

export type H2SceneOptions = Omit<SceneOptions, 'respond' | 'tls'> & {
  /** Options of the origin; its TLS defaults to certificates of the public authority for `names`. */
  readonly origin?: Partial<H2OriginOptions>;
  readonly respond?: H2OriginOptions['respond'];
};

export async function createH2Scene(options: H2SceneOptions = {}): Promise<H2Scene> {
  const { names = ['api.test'], respond, origin: own = {} } = options;
  const tls = { authority: publicAuthority, names };
  const origin = await createH2Origin({ tls, ...(respond ? { respond } : {}), ...own });
  const proxy = await createSceneProxy(options, origin.port);
  const at = (name = 'api.test'): string => `${name}:${origin.port}`;
  const open: WireClient[] = [];
  const wire = async (): Promise<WireClient> => {
    const client = await WireClient.connect(proxy.port);
    open.push(client);
    return client;
  };
  const leave = async (): Promise<void> => {
    for (const client of open) await client[Symbol.asyncDispose]();
  };
  return {
    proxy,
    origin,
    at,
    wire,
    leave,
    async client(name = 'api.test', { tls: more = {}, ...peer } = {}) {
      const client = await wire();
      const { status } = await client.openTunnel(at(name));
      if (status !== 200) throw new Error(`CONNECT got status ${status}`);
      await client.startTls({ ca: proxy.caPem, name, alpn: ['h2'], ...more });
      return H2WireClient.over(client, at(name), peer);
    },
    async [Symbol.asyncDispose]() {
      await leave();
      await proxy[Symbol.asyncDispose]();
      await origin.close();
    },
  };
}

export type Arrival = { readonly response: H2Response; readonly request: H2Request | undefined };

/** Sends one request on a connection of its own; returns its response and the request that arrived at the origin. */
export async function arrival(
  scene: H2Scene,
  extra: readonly SentField[] = [],
  pseudo: Readonly<Record<string, string | undefined>> = {},
  name?: string,
): Promise<Arrival> {
  const before = scene.origin.streams.length;
  await using client = await scene.client(name);
  const response = await client.request(client.fields('/', extra, pseudo));
  return { response, request: scene.origin.streams[before] };
}

/** Every request byte that the origin got over either version, without the frames that open a session. */
export function bytesAt({ origin }: H2Scene): string {
  const sessions = origin.connections.filter(({ peer }) => (peer?.counts['HEADERS'] ?? 0) > 0);
  return [...sessions.map(({ transcript }) => transcript()), ...origin.http1.transcripts].join('');
}

// A whole data path on loopback for one test: an origin, a proxy with one rule for it, and raw clients on the proxy
// port and in tunnels. The tests are about bytes; the setup is here.
import { type Exchange, createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createTestAuthority, type TestAuthority } from '../support/test-authority.ts';
import { createTestSidecar, type TestSidecar, type TestSidecarOptions } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

export const secret = 'sesame-open-now';
export const origins: TestAuthority = createTestAuthority();

/** One rule: `api.test` gets `Authorization: Bearer <secret>`. */
export const apiRule = {
  name: 'api',
  match_hosts: ['api.test'],
  headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
} as const;

export type DataPath = AsyncDisposable & {
  /** TLS, for `api.test`, `other.test` and 127.0.0.1. */
  readonly origin: RecordingOrigin;
  readonly proxy: TestSidecar;
  /** `api.test:PORT`. */
  readonly authority: string;
  /** A client inside an intercepted tunnel to `authority`, TLS done. */
  tunnel(): Promise<WireClient>;
  /** A client on the proxy port. */
  plain(): Promise<WireClient>;
};

export type DataPathOptions = Omit<TestSidecarOptions, 'origins'> & {
  readonly respond?: (exchange: Exchange) => void | Promise<void>;
  /** The origin without TLS. */
  readonly isClear?: boolean;
};

export async function createDataPath(options: DataPathOptions = {}): Promise<DataPath> {
  const { respond, isClear = false, ...sidecarOptions } = options;
  const tls = { authority: origins, names: ['api.test', 'other.test', '127.0.0.1'] };
  const origin = await createOrigin({ ...(isClear ? {} : { tls }), ...(respond ? { respond } : {}) });
  const proxy = await createTestSidecar({
    proxyConfig: { rules: [apiRule] },
    secrets: { TOKEN: secret },
    origins,
    ...sidecarOptions,
  });
  const authority = `api.test:${origin.port}`;
  const clients: WireClient[] = [];
  const keep = (client: WireClient): WireClient => {
    clients.push(client);
    return client;
  };
  return {
    origin,
    proxy,
    authority,
    tunnel: async () =>
      keep(await WireClient.connectThrough(proxy.port, authority, { ca: proxy.caPem, name: 'api.test' })),
    plain: async () => keep(await WireClient.connect(proxy.port)),
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client[Symbol.asyncDispose]();
      await origin.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** A head from its lines. */
export function head(...lines: string[]): string {
  return [...lines, '', ''].join('\r\n');
}

/** The code of a refusal as the client reads it. */
export function errorOf(response: {
  readonly headers: readonly (readonly [string, string])[];
}): string | undefined {
  return response.headers.find(([name]) => name === 'X-Sallyport-Error')?.[1];
}

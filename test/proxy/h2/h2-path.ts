// The data path of data-path.ts over HTTP/2: an origin that speaks both versions, a proxy with one rule for it, and raw
// clients inside intercepted tunnels.
import { createH2Origin, type H2Origin, type H2OriginOptions } from '../../support/h2-origin.ts';
import { type H2ClientOptions, H2WireClient } from '../../support/h2-wire-client.ts';
import { createTestSidecar, type TestSidecar, type TestSidecarOptions } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { apiRule, origins, secret } from '../data-path.ts';

export type H2Path = AsyncDisposable & {
  /** For `api.test`, `other.test` and 127.0.0.1. */
  readonly origin: H2Origin;
  readonly proxy: TestSidecar;
  /** `api.test:PORT`. */
  readonly authority: string;
  /** A client whose ALPN list is `h2` alone. */
  client(options?: H2ClientOptions): Promise<H2WireClient>;
  /** A client inside the tunnel whose TLS is done, with another ALPN list; none with an empty one. */
  wire(alpn: readonly string[]): Promise<WireClient>;
};

export type H2PathOptions = {
  readonly origin?: Partial<H2OriginOptions>;
  readonly proxy?: Omit<TestSidecarOptions, 'origins'>;
};

export async function createH2Path(options: H2PathOptions = {}): Promise<H2Path> {
  const tls = { authority: origins, names: ['api.test', 'other.test', '127.0.0.1'] };
  const origin = await createH2Origin({ tls, ...options.origin });
  const proxy = await createTestSidecar({
    proxyConfig: { rules: [apiRule] },
    secrets: { TOKEN: secret },
    origins,
    ...options.proxy,
  });
  const authority = `api.test:${origin.port}`;
  const wires: WireClient[] = [];
  const wire = async (alpn: readonly string[]): Promise<WireClient> => {
    const trust = { ca: proxy.caPem, name: 'api.test', alpn };
    const made = await WireClient.connectThrough(proxy.port, authority, trust);
    wires.push(made);
    return made;
  };
  return {
    origin,
    proxy,
    authority,
    wire,
    client: async (clientOptions) => H2WireClient.over(await wire(['h2']), authority, clientOptions),
    async [Symbol.asyncDispose]() {
      for (const made of wires) await made[Symbol.asyncDispose]();
      await origin.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

// The scene of the invariant tests: a sidecar in this process, TLS origins on loopback that store every byte, one
// secret, and a search for traces of it. It checks nothing itself.
import {
  type Exchange,
  type OriginOptions,
  type RecordingOrigin,
  createOrigin,
} from '../support/recording-origin.ts';
import { type TestAuthority, createTestAuthority } from '../support/test-authority.ts';
import { type TestSidecar, type TestSidecarOptions, createTestSidecar } from '../support/test-sidecar.ts';
import { type TlsOptions, WireClient } from '../support/wire-client.ts';

/** Its base64 contains `+` and `/`, and percent-encoding changes it, so that each encoding is distinct. */
export const SECRET = 'sesame>>open??now~~42~';
export const INJECTED: string = `Bearer ${SECRET}`;
export const publicAuthority: TestAuthority = createTestAuthority('Stand-in for the public CAs');

export type Scene = AsyncDisposable & {
  readonly proxy: TestSidecar;
  readonly origin: RecordingOrigin;
  /** `name:port` of the origin. */
  at(name?: string): string;
  /** A client inside the intercepted tunnel to `name` at the origin. */
  tunnel(name?: string, tls?: Partial<TlsOptions>): Promise<WireClient>;
  /** A client on the proxy port that has sent nothing. */
  client(): Promise<WireClient>;
};

export type SceneOptions = {
  /** Names that the origin proves; the rule's host comes first. */
  readonly names?: readonly string[];
  readonly rules?: readonly unknown[];
  readonly callbacks?: readonly unknown[];
  readonly respond?: (exchange: Exchange) => void | Promise<void>;
  /** The protocol of the origin; TLS with certificates of the public authority for `names` if absent. */
  readonly tls?: OriginOptions['tls'] | 'clear';
  /** PEM of an additional CA that the operator trusts. */
  readonly trust?: string;
  readonly config?: ((originPort: number) => TestSidecarOptions['config']) | undefined;
  /** Workspace secrets besides TOKEN. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly resolve?: TestSidecarOptions['names'];
  readonly now?: () => number;
  /** Starts an admin API, with the given store for its changes. */
  readonly sidecar?: Pick<TestSidecarOptions, 'admin' | 'state'>;
};

/** A rule that injects the secret as `Authorization`. */
export function bearerRule(host: string, more: Readonly<Record<string, unknown>> = {}): unknown {
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  return { name: host, match_hosts: [host], headers, ...more };
}

export async function createScene(options: SceneOptions = {}): Promise<Scene> {
  const { names = ['api.test'], respond } = options;
  const { tls = { authority: publicAuthority, names } } = options;
  const origin = await createOrigin({ ...(tls === 'clear' ? {} : { tls }), ...(respond ? { respond } : {}) });
  const proxy = await createSceneProxy(options, origin.port);
  const at = (name = 'api.test'): string => `${name}:${origin.port}`;
  return {
    proxy,
    origin,
    at,
    tunnel: (name = 'api.test', tls = {}) =>
      WireClient.connectThrough(proxy.port, at(name), { ca: proxy.caPem, name, ...tls }),
    client: () => WireClient.connect(proxy.port),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await origin.close();
    },
  };
}

/** The proxy of a scene without its origin, for the test's own origin at `originPort`. */
export function createSceneProxy(
  options: Omit<SceneOptions, 'names' | 'respond' | 'tls'>,
  originPort: number,
): Promise<TestSidecar> {
  const { resolve, now } = options;
  return createTestSidecar({
    proxyConfig: { rules: options.rules ?? [bearerRule('api.test')], callbacks: options.callbacks ?? [] },
    secrets: { TOKEN: SECRET, ...options.secrets },
    origins: {
      ...publicAuthority,
      certificatePem: `${publicAuthority.certificatePem}\n${options.trust ?? ''}`,
    },
    // A test that fails with an open exchange must report that at once.
    config: { timeouts: { drain_ms: 200 }, ...options.config?.(originPort) },
    ...(resolve ? { names: resolve } : {}),
    ...(now ? { now } : {}),
    ...options.sidecar,
  });
}

/** A request head with its blank line. */
export function head(startLine: string, host: string, fields: readonly string[] = []): string {
  return [`${startLine} HTTP/1.1`, `Host: ${host}`, ...fields, '', ''].join('\r\n');
}

/** Every form in which these bytes contain the secret. */
export function tracesOf(secret: string, transcripts: readonly string[]): readonly string[] {
  const all = transcripts.join('\n');
  return formsOf(secret).filter((form) => all.includes(form));
}

function formsOf(secret: string): readonly string[] {
  const value = Buffer.from(secret, 'latin1');
  // The three alignments of base64, reduced to the characters that only the secret determines.
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), value])
      .toString('base64')
      .replace(/=+$/, '');
    return text.slice([0, 2, 3][shift], Math.floor(((shift + value.length) * 8) / 6));
  });
  return [
    secret,
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    encodeURIComponent(secret),
    value.toString('hex'),
    [...secret].toReversed().join(''),
    JSON.stringify(secret).slice(1, -1),
  ];
}

// One origin behind sidecars that are started one after the other on the same state, as restarts are. What a test reads
// is the key that the origin got: which value, of which revision, reached it.
import { type OriginOptions, createOrigin, type RecordingOrigin } from '../../support/recording-origin.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestAuthority, type TestAuthority } from '../../support/test-authority.ts';
import { type TestSidecar, type TestSidecarOptions, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';

const origins: TestAuthority = createTestAuthority();

export type SandboxScene = AsyncDisposable & {
  readonly origin: RecordingOrigin;
  /** `api.test:PORT`. */
  readonly authority: string;
  /** Of the sealed state. */
  readonly directory: string;
  /** Ends the one before, if there is one, and starts the next. */
  start(options?: TestSidecarOptions): Promise<TestSidecar>;
  /** A client inside an intercepted tunnel to the origin. */
  tunnel(port: number, token?: string): Promise<WireClient>;
  /** Sends one request and returns the X-Key that arrived. */
  keyBy(client: WireClient): Promise<string | undefined>;
  /** The same on a connection of its own. */
  keyAt(port: number, token?: string): Promise<string | undefined>;
};

export async function createSandboxScene(
  options: Pick<OriginOptions, 'respond'> = {},
): Promise<SandboxScene> {
  const scratch = await createScratch();
  const origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] }, ...options });
  const authority = `api.test:${origin.port}`;
  const clients: WireClient[] = [];
  let running: TestSidecar | undefined;
  const tunnel = async (port: number, token?: string): Promise<WireClient> => {
    const client = await WireClient.connect(port);
    clients.push(client);
    const { status } = await client.openTunnel(authority, token === undefined ? [] : [showing(token)]);
    if (status !== 200) throw new Error(`the response to CONNECT was ${status}`);
    await client.startTls({ ca: running?.caPem ?? '', name: 'api.test' });
    return client;
  };
  const keyBy = async (client: WireClient): Promise<string | undefined> => {
    await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const { head } = await client.readResponse();
    if (head.status !== 200) throw new Error(`the response was ${head.status}`);
    return origin.requests.at(-1)?.headers.find(([name]) => name === 'X-Key')?.[1];
  };
  const end = async (): Promise<void> => {
    for (const client of clients.splice(0)) await client[Symbol.asyncDispose]();
    await running?.[Symbol.asyncDispose]();
  };
  return {
    origin,
    authority,
    directory: scratch.path,
    tunnel,
    keyBy,
    async start(options = {}) {
      await end();
      running = await createTestSidecar({ admin: true, state: scratch.path, origins, ...options });
      return running;
    },
    keyAt: async (port, token) => keyBy(await tunnel(port, token)),
    async [Symbol.asyncDispose]() {
      await end();
      await origin.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** The field by which a client of a sandbox shows its token. */
export function showing(token: string): string {
  return `Proxy-Authorization: Bearer ${token}`;
}

/** A proxy_config that gives `api.test` the value as X-Key. */
export function keyRules(
  value: string,
  type: 'plaintext' | 'workspace_secret' | 'opaque' = 'plaintext',
): { readonly rules: readonly object[] } {
  return { rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type, value }] }] };
}

/** The port of a URL such as a sandbox's `proxy`. */
export function portOf(url: unknown): number {
  return Number(new URL(String(url)).port);
}

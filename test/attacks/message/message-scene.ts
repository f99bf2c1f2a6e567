// The sidecars of the `message` rows, one for each policy, created when its first row is played, and their shared origins.
import { publicAuthority } from '../../invariants/credential-scene.ts';
import type { OriginRequest } from '../../support/recording-origin.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { MessageTarget } from './message-driver.ts';
import { type MessageOrigins, createMessageOrigins, names } from './message-origins.ts';
import { type PolicyName, SECRET, messagePolicies } from './message-policies.ts';
import type { EntryPoint } from './message-script.ts';

export type MessageScene = AsyncDisposable & {
  readonly origins: MessageOrigins;
  target(policy?: PolicyName): Promise<MessageTarget>;
};

/** More than ten times the duration of the slowest row. */
const PATIENCE_MS = 10_000;

export async function createMessageScene(): Promise<MessageScene> {
  const origins = await createMessageOrigins(publicAuthority);
  const proxies = new Map<PolicyName, TestSidecar>();
  return {
    origins,
    async target(policy = 'bearer') {
      const proxy = proxies.get(policy) ?? (await createProxy(origins, policy));
      proxies.set(policy, proxy);
      return toTarget(origins, proxy, policy);
    },
    async [Symbol.asyncDispose]() {
      for (const proxy of proxies.values()) await proxy[Symbol.asyncDispose]();
      await origins[Symbol.asyncDispose]();
    },
  };
}

/** The values of the placeholders at an entry point. */
export function valuesAt(
  origins: MessageOrigins,
  policy: PolicyName,
  entryPoint: EntryPoint,
): Record<string, string> {
  const { port } = origins.own[entryPoint];
  const evilPort = String(origins.evil[entryPoint].port);
  return {
    AT: entryPoint === 'plain' ? `http://api.test:${port}` : '',
    HOST: `api.test:${port}`,
    PORT: String(port),
    EVIL: `evil.test:${evilPort}`,
    EVIL_PORT: evilPort,
    AUTH: messagePolicies[policy].injected.join('\r\n'),
    SECRET,
  };
}

/** Requests that began at an origin and were not completed. */
export function unfinished({ all }: MessageOrigins): readonly OriginRequest[] {
  return all.flatMap(({ requests }) => requests.filter(({ body }) => body === undefined));
}

function createProxy(origins: MessageOrigins, policy: PolicyName): Promise<TestSidecar> {
  const { plain } = origins.own;
  return createTestSidecar({
    proxyConfig: messagePolicies[policy].document,
    secrets: { TOKEN: SECRET },
    origins: publicAuthority,
    names,
    config: { timeouts: { drain_ms: 200 }, inject_cleartext: [`api.test:${plain.port}`] },
  });
}

function toTarget(origins: MessageOrigins, proxy: TestSidecar, policy: PolicyName): MessageTarget {
  return {
    open: (entryPoint) =>
      entryPoint === 'plain'
        ? WireClient.connect(proxy.port)
        : WireClient.connectThrough(proxy.port, `api.test:${origins.own.tunnel.port}`, {
            ca: proxy.caPem,
            name: 'api.test',
          }),
    origins: origins.all,
    values: (entryPoint) => valuesAt(origins, policy, entryPoint),
    records: () => proxy.records(),
    record: (index) => proxy.record(index),
    patienceMs: PATIENCE_MS,
    ends: true,
  };
}

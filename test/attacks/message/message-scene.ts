// The sidecars of the `message` rows, one a policy, made when the first row of it is played, and the origins behind them all.
import { publicAuthority } from '../../invariants/credential-scene.ts';
import type { OriginRequest } from '../../support/recording-origin.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import type { MessageTarget } from './message-driver.ts';
import { type MessageOrigins, createMessageOrigins, names } from './message-origins.ts';
import { type PolicyName, SECRET, messagePolicies } from './message-policies.ts';
import type { Entry } from './message-script.ts';

export type MessageScene = AsyncDisposable & {
  readonly origins: MessageOrigins;
  target(policy?: PolicyName): Promise<MessageTarget>;
};

/** Ten times and more of what the slowest row takes. */
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

/** What the placeholders stand for at a door. */
export function valuesAt(origins: MessageOrigins, policy: PolicyName, entry: Entry): Record<string, string> {
  const { port } = origins.own[entry];
  const evilPort = String(origins.evil[entry].port);
  return {
    AT: entry === 'plain' ? `http://api.test:${port}` : '',
    HOST: `api.test:${port}`,
    PORT: String(port),
    EVIL: `evil.test:${evilPort}`,
    EVIL_PORT: evilPort,
    AUTH: messagePolicies[policy].injected.join('\r\n'),
    SECRET,
  };
}

/** Requests that began at an origin and did not become whole. */
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
    open: (entry) =>
      entry === 'plain'
        ? WireClient.connect(proxy.port)
        : WireClient.connectThrough(proxy.port, `api.test:${origins.own.tunnel.port}`, {
            ca: proxy.caPem,
            name: 'api.test',
          }),
    origins: origins.all,
    values: (entry) => valuesAt(origins, policy, entry),
    records: () => proxy.records(),
    record: (index) => proxy.record(index),
    patienceMs: PATIENCE_MS,
    ends: true,
  };
}

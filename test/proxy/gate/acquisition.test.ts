// From a request to its connection: pooled before dialled, and a new decision when the policy changes meanwhile.
import { expect, it } from 'vitest';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { Policy } from '../../../src/policy/policy.ts';
import type { ConnectionScope, ProxyContext } from '../../../src/proxy/context.ts';
import { UpstreamAcquisition } from '../../../src/proxy/gate/acquisition.ts';
import { planRequest } from '../../../src/proxy/gate/request-plan.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { authorityOf, requestHead } from '../request-head.ts';

type Connection = { readonly name: string; discard(): void };

function policyOf(revision: number, denied: readonly string[] = []): Policy {
  const parsed = parseProxyConfig({ access_control: { deny_list: denied } });
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, revision) : parsed;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

/** An acquisition with a scripted source: what happened, in order. `policy` may be replaced while it dials. */
function scene(pooled: boolean): {
  readonly events: string[];
  readonly acquisition: UpstreamAcquisition<Connection>;
  readonly dialled: PromiseWithResolvers<Connection>[];
  setPolicy(policy: Policy): void;
} {
  let policy = policyOf(1);
  const events: string[] = [];
  const dialled: PromiseWithResolvers<Connection>[] = [];
  const context = { sandbox: 'a', policy: () => policy, scrubsBodies: false } as unknown as ProxyContext;
  const tunnel = authorityOf('api.test:443');
  const scope: ConnectionScope = { context, scheme: 'https', tunnel, clientAddress: undefined };
  const plan = planRequest(requestHead('GET / HTTP/1.1', 'Host: api.test'), tunnel, 'https');
  if (isRefusal(plan)) throw new Error(plan.refused);
  const source = {
    take: () => (pooled ? connection('pooled') : undefined),
    open() {
      const pending = Promise.withResolvers<Connection>();
      dialled.push(pending);
      return pending.promise;
    },
  };
  function connection(name: string): Connection {
    return { name, discard: () => events.push(`${name} is discarded`) };
  }
  const acquisition = new UpstreamAcquisition<Connection>(scope, plan, source, {
    onReady: ({ name }) => events.push(`${name} is ready`),
    onRefused: ({ refused }) => events.push(refused),
    onBug: (error) => events.push(String(error)),
  });
  return { events, acquisition, dialled, setPolicy: (next) => (policy = next) };
}

/** Resolves the dial, and waits until the acquisition has seen it. */
async function connect(
  { dialled, events }: { readonly dialled: PromiseWithResolvers<Connection>[]; readonly events: string[] },
  name: string,
): Promise<void> {
  const pending = dialled.at(-1);
  pending?.resolve({ name, discard: () => events.push(`${name} is discarded`) });
  await pending?.promise;
  await Promise.resolve();
}

it('a pooled connection is used without a dial', () => {
  const { acquisition, events, dialled } = scene(true);
  acquisition.start();
  expect([events, dialled.length]).toEqual([['pooled is ready'], 0]);
});

it('a new connection is used if the policy is the same', async () => {
  const at = scene(false);
  at.acquisition.start();
  await connect(at, 'new');
  expect(at.events).toEqual(['new is ready']);
});

it('a connection of an older policy is discarded, and the new policy decides', async () => {
  const at = scene(false);
  at.acquisition.start();
  at.setPolicy(policyOf(2));
  await connect(at, 'old');
  await connect(at, 'new');
  expect(at.events).toEqual(['old is discarded', 'new is ready']);
  expect(at.acquisition.record.revision).toBe(2);
});

it('a request that the new policy denies is refused', async () => {
  const at = scene(false);
  at.acquisition.start();
  at.setPolicy(policyOf(2, ['api.test']));
  await connect(at, 'old');
  expect(at.events).toEqual(['old is discarded', 'access_denied']);
});

it('a request is refused if the policy changes with each dial', async () => {
  const at = scene(false);
  at.acquisition.start();
  for (let revision = 2; revision < 12; revision += 1) {
    at.setPolicy(policyOf(revision));
    await connect(at, 'old');
  }
  expect(at.events.at(-1)).toBe('rules_changed');
  expect(at.dialled).toHaveLength(10);
});

it('a connection that comes after the end is discarded', async () => {
  const at = scene(false);
  at.acquisition.start();
  at.acquisition.end();
  await connect(at, 'late');
  expect(at.events).toEqual(['late is discarded']);
});

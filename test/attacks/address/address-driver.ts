// Plays a row of the stage `address`: the parsers, the policy, the gate, the resolver and the dialler of a sandbox, with
// the lookups of the row and a ledger instead of the network. Reports only differences.
import { vi } from 'vitest';
import { BoundedCache } from '../../../src/base/bounded-cache.ts';
import { createCallbackResolver } from '../../../src/callback/resolver.ts';
import { type Authority, parseAuthority } from '../../../src/policy/authority/authority.ts';
import { compileProxyConfig } from '../../../src/policy/compile.ts';
import type { Policy } from '../../../src/policy/policy.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { type Dialler, type DialTarget, createDialler } from '../../../src/proxy/upstream/dial.ts';
import { createConnectionQuota } from '../../../src/proxy/upstream/connection-quota.ts';
import { decideRequest } from '../../../src/proxy/gate/inject.ts';
import { type Refusal, isRefusal, refusalBytes, refuse } from '../../../src/proxy/refusal.ts';
import { type Resolver, createResolver } from '../../../src/proxy/upstream/resolver.ts';
import { dialTarget } from '../../../src/proxy/gate/connection-source.ts';
import { type Config, parseConfig } from '../../../src/sidecar/config.ts';
import { OwnListeners, callbackGuard, egressRules } from '../../../src/sidecar/egress.ts';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { createTrustSet } from '../../../src/tls/trust.ts';
import type { DialLedger } from '../../invariants/dial-ledger.ts';
import type { AddressScript, Response, Expectation, Profile } from './address-script.ts';

export type Observation = {
  readonly seen: Readonly<Partial<Record<Profile, readonly string[]>>>;
  /** The responses that clients read if nothing was dialled. */
  readonly responses: readonly string[];
};

/** Only the ports that rows use, because a list of all ports is slow to parse. */
const EVERY_PORT: readonly number[] = [9, 22, 25, 80, 443, 3128, 3129];
const OPEN = { listen: '0.0.0.0:3128', auth: 'none' } as const;
const profiles: Readonly<Record<Profile, Readonly<Record<string, unknown>>>> = {
  default: {},
  exposed: OPEN,
  never: { ...OPEN, egress: { private_by_rule: 'never' } },
  loopback: { ...OPEN, egress: { allow_private: ['loopback'] } },
  listed: {
    ...OPEN,
    egress: { allow_private: ['10.0.0.0/8', 'fd00::/8', '100.64.0.0/10', '::ffff:0:0/96'] },
  },
  everything: { ...OPEN, egress: { allow_private: ['all', '0.0.0.0/0', '::/0'], ports: EVERY_PORT } },
  'strict-callbacks': { ...OPEN, callback: { allow_private: false } },
};

const ownAuthority = createCertificateAuthority({ commonName: 'Address rows' });
const trust = createTrustSet({ rootsPem: [], extraPem: ownAuthority.certificatePem, without: ownAuthority });

export async function play(script: AddressScript, ledger: DialLedger): Promise<Observation> {
  const seen: Partial<Record<Profile, readonly string[]>> = {};
  const responses: string[] = [];
  for (const profile of script.under) {
    const events: string[] = [];
    const sandbox = createSandbox(script, { ...profiles[profile], ...script.config }, events);
    if (sandbox !== undefined) {
      for (const [turn, to] of script.to.entries()) {
        using _clock = clockAhead(turn * (script.pauseMs ?? 0));
        const before = ledger.attempts.length;
        const end = await attempt(script.by, to, sandbox);
        const dialled = ledger.attempts.slice(before).map((address) => `dial ${address}`);
        if (dialled.length === 0 && end !== undefined) {
          events.push([end.refused, end.cause].filter((part) => part !== undefined).join(': '));
          responses.push(refusalBytes(end, { method: 'CONNECT', close: true }).toString('latin1'));
        } else events.push(...dialled);
      }
      await sandbox.close();
    }
    seen[profile] = events;
  }
  return { seen, responses };
}

export function violations(expected: Expectation, observed: Observation): readonly string[] {
  const found = Object.entries(expected.seen).flatMap(([profile, events]) => {
    const got = observed.seen[profile as Profile] ?? [];
    return JSON.stringify(got) === JSON.stringify(events)
      ? []
      : [`${profile}: ${got.join(' | ')} instead of ${events.join(' | ')}`];
  });
  const kinds = new Set(observed.responses).size;
  return expected.isAlike && kinds !== 1 ? [...found, `${kinds} different responses`] : found;
}

type Sandbox = {
  readonly policy: Policy;
  readonly dialler: Dialler;
  judge(authority: Authority, scheme: 'http' | 'https'): Promise<Refusal | undefined>;
  close(): Promise<void>;
};

/** Undefined if the document is rejected; `events` contains the reason. */
function createSandbox(
  { document = {}, responses = {} }: AddressScript,
  settings: object,
  events: string[],
): Sandbox | undefined {
  const config = configOf(settings);
  const parsed = parseProxyConfig(document, { allowWildcards: config.allowWildcards });
  const compiled = parsed.ok ? compileProxyConfig(parsed.value, () => undefined, 1) : parsed;
  if (!compiled.ok) {
    events.push(...compiled.issues.map(({ loc, type }) => `422 ${loc.join('.')} ${type}`));
    return undefined;
  }
  const policy = compiled.value;
  const own = new OwnListeners();
  own.add({ address: config.listen.host, port: 3128 });
  own.admin = { address: '127.0.0.1', port: 3129 };
  const egress = egressRules(config, own);
  const resolver = createScriptedResolver(responses, events);
  const vet = callbackGuard(config, resolver, egress);
  const callbacks = createCallbackResolver({ sandbox: 'address', vet, trust });
  const sessions = new BoundedCache<Buffer>({ max: 1 });
  return {
    policy,
    dialler: createDialler({
      resolver,
      egress,
      trust,
      sessions,
      connectMs: 5_000,
      quota: createConnectionQuota(100),
    }),
    close: () => callbacks.close(),
    async judge(authority, scheme) {
      const verdict = await decideRequest({ policy, authority, path: '/v1', scheme, egress, callbacks });
      return isRefusal(verdict) ? verdict : undefined;
    },
  };
}

function configOf(settings: object): Config {
  const parsed = parseConfig(settings, {});
  if (!parsed.ok) throw new Error(`the config of a row is invalid: ${JSON.stringify(parsed.issues)}`);
  return parsed.value;
}

/** A refusal, or undefined if the connection was dialled. */
async function attempt(by: AddressScript['by'], to: string, sandbox: Sandbox): Promise<Refusal | undefined> {
  const authority = parseAuthority(to, by === 'http' ? 80 : undefined);
  if (typeof authority === 'string') return refuse('authority_invalid', authority);
  const cover = sandbox.policy.coverOf(authority);
  if (cover.kind === 'refuse') return refuse(cover.reason);
  if (by === 'tunnel' && cover.kind !== 'tunnel') throw new Error(`${to} is not a blind tunnel`);
  const refused = by === 'tunnel' ? undefined : await sandbox.judge(authority, by);
  if (refused) return refused;
  const target = {
    ...dialTarget(sandbox.policy, { authority, scheme: 'https', alpn: ['http/1.1'] }),
    scheme: by,
  };
  const opened = await sandbox.dialler.dial(target satisfies DialTarget, new AbortController().signal);
  if (isRefusal(opened)) return opened;
  opened.destroy();
  return undefined;
}

const SILENT_MS = 20;

function createScriptedResolver(
  responses: NonNullable<AddressScript['responses']>,
  events: string[],
): Resolver {
  const asked = new Map<string, number>();
  return createResolver({
    timeoutMs: Object.values(responses).some((list) => list.includes('silence')) ? SILENT_MS : 5_000,
    maxLookups: 4,
    lookup: async (name) => {
      events.push(`lookup ${name}`);
      const turn = asked.get(name) ?? 0;
      asked.set(name, turn + 1);
      const list = responses[name] ?? [['192.0.43.7']];
      const response: Response = list[Math.min(turn, list.length - 1)] ?? [];
      if (response === 'silence') return new Promise<never>(() => {});
      if (response === 'SERVFAIL') throw new Error('queryA ESERVFAIL');
      return response.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
  });
}

function clockAhead(ms: number): Disposable {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  return { [Symbol.dispose]: () => spy.mockRestore() };
}

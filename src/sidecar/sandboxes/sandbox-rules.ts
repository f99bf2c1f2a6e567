// The rules of sandboxes: validates and compiles proxy_config documents, and activates them. The operator's document and
// secrets for the sandbox `default` are applied here and never stored.
import type { Issue } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { type Steps, finish } from '../../base/steps.ts';
import {
  type Compiled,
  type SecretLookup,
  compileInSteps,
  compileProxyConfig,
  secretNamesOf,
} from '../../policy/compile.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { type ParsedProxyConfig, parseProxyConfig } from '../../policy/document/proxy-config.ts';
import type { Policy } from '../../policy/policy.ts';
import { type SandboxState, newEtag } from '../state/sandbox-state.ts';
import type { Sandbox, SharedParts } from './sandbox.ts';

export const DEFAULT = 'default' as const;

/** The part of a state that decides requests. */
export type ActiveRules = Pick<SandboxState, 'revision' | 'etag' | 'proxyConfig' | 'used'>;

/** Without the rest of the state: a secret that was deleted meanwhile would live on in it. */
export function rulesOf({ revision, etag, proxyConfig, used }: SandboxState): ActiveRules {
  return { revision, etag, proxyConfig, used };
}

export type RuledSandbox = {
  /** What is stored. */
  state: SandboxState;
  /** What decides requests: the stored rules or, for `default`, a document of the operator that replaces them. */
  active: ActiveRules;
  /** Counts changes of what rules are compiled from: a document that was checked at an earlier version is checked again. */
  version: number;
  readonly sandbox: Sandbox;
};

/** A valid document, compiled; to be activated once it is stored. */
export type Prepared = {
  readonly ok: true;
  readonly next: SandboxState;
  readonly policy: Policy;
  readonly warnings: readonly Issue[];
};
export type Invalid = { readonly ok: false; readonly issues: readonly Issue[] };

type Parsed = Extract<ParsedProxyConfig, { readonly ok: true }>;

/** Takes several steps, because it may take long. */
type Preparing = Steps<Prepared | Invalid>;

export type Applied =
  | { readonly ok: true; readonly revision: number; readonly warnings: readonly Issue[] }
  | Invalid;

export class SandboxRules {
  readonly #shared: Pick<SharedParts, 'config' | 'log'>;
  /** Those of the operator's files, for `default`. */
  operatorSecrets: SecretLookup = () => undefined;

  constructor(shared: Pick<SharedParts, 'config' | 'log'>) {
    this.#shared = shared;
  }

  /** Compiles what parseProxyConfig accepted, without effect. */
  prepare(state: SandboxState, { value, warnings }: Pick<Parsed, 'value' | 'warnings'>): Preparing {
    return this.#compileNext(state, value, { secrets: state.secrets, warnings });
  }

  /** The policy of `proxyConfig` with `secrets`; for `default`, the operator's secrets complete them. */
  compile(state: SandboxState, proxyConfig: ProxyConfig, secrets: ReadonlyMap<string, Secret>): Compiled {
    return compileProxyConfig(proxyConfig, this.#lookupOf(state, secrets), state.revision);
  }

  #lookupOf({ id }: SandboxState, secrets: ReadonlyMap<string, Secret>): SecretLookup {
    return (name) => secrets.get(name) ?? (id === DEFAULT ? this.operatorSecrets(name) : undefined);
  }

  *#compileNext(
    state: SandboxState,
    proxyConfig: ProxyConfig,
    { secrets, warnings }: { secrets: ReadonlyMap<string, Secret>; warnings: readonly Issue[] },
  ): Preparing {
    const revision = state.revision + 1;
    const names = new Set(secretNamesOf(proxyConfig));
    const used = new Map([...secrets].filter(([name]) => names.has(name)));
    const next = { ...state, revision, etag: newEtag(revision), proxyConfig, rejected: undefined, used };
    yield;
    const compiled = yield* compileInSteps(proxyConfig, this.#lookupOf(next, secrets), revision);
    return compiled.ok ? { ok: true, next, policy: compiled.value, warnings } : compiled;
  }

  /** `next` is now what is stored and active. */
  adopt(ruled: RuledSandbox, prepared: Pick<Prepared, 'next' | 'policy'>): void {
    ruled.state = prepared.next;
    this.#activate(ruled, prepared);
  }

  #activate(ruled: RuledSandbox, { next, policy }: Pick<Prepared, 'next' | 'policy'>): void {
    ruled.active = rulesOf(next);
    ruled.version += 1;
    ruled.sandbox.activate(policy);
    const { revision, rules, callbacks } = policy;
    const counts = { rules: rules.length, callbacks: callbacks.length };
    this.#shared.log.info({ sandbox: next.id, revision, ...counts }, 'proxy_config applied');
  }

  /** The operator's document and secrets for `default`, active at once; an invalid document changes nothing. */
  applyOperators(ruled: RuledSandbox, document: unknown, secrets: SecretLookup): Applied {
    const state = { ...ruled.state, revision: ruled.active.revision };
    const { allowWildcards, reservedHost } = this.#shared.config;
    return this.#applyNow(ruled, secrets, () => {
      const authored = parseProxyConfig(document, { allowWildcards, reservedHost });
      return authored.ok ? finish(this.prepare(state, authored)) : authored;
    });
  }

  /** The active document again, with the operator's current secrets and the sandbox's own as they are active. */
  reapply(ruled: RuledSandbox, secrets: SecretLookup): Applied {
    const { proxyConfig, used, revision } = ruled.active;
    if (proxyConfig) {
      const state = { ...ruled.state, revision };
      const options = { secrets: used, warnings: [] };
      return this.#applyNow(ruled, secrets, () => finish(this.#compileNext(state, proxyConfig, options)));
    }
    this.operatorSecrets = secrets;
    ruled.version += 1;
    return { ok: true, revision, warnings: [] };
  }

  #applyNow(ruled: RuledSandbox, secrets: SecretLookup, prepare: () => Prepared | Invalid): Applied {
    const before = this.operatorSecrets;
    this.operatorSecrets = secrets;
    const result = prepare();
    if (!result.ok) {
      this.operatorSecrets = before;
      return result;
    }
    this.#activate(ruled, result);
    return { ok: true, revision: result.next.revision, warnings: result.warnings };
  }
}

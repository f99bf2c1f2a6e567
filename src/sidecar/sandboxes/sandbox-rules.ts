// The rules of sandboxes: validates and compiles proxy_config documents, and activates them. The operator's document and
// secrets for the sandbox `default` are applied here and never stored.
import type { Issue } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { type SecretLookup, compileProxyConfig, secretNamesOf } from '../../policy/compile.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
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
type Invalid = { readonly ok: false; readonly issues: readonly Issue[] };

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

  /** Validates and compiles, without effect. An opaque value that the document omits is taken from `stored`. */
  prepare(state: SandboxState, document: unknown, stored?: ProxyConfig): Prepared | Invalid {
    const { allowWildcards, reservedHost } = this.#shared.config;
    const authored = parseProxyConfig(document, { allowWildcards, reservedHost, stored });
    if (!authored.ok) return authored;
    return this.#compileNext(state, authored.value, { secrets: state.secrets, warnings: authored.warnings });
  }

  /** The policy of `proxyConfig` with `secrets`; for `default`, the operator's secrets complete them. */
  compile(
    { id, revision }: SandboxState,
    proxyConfig: ProxyConfig,
    secrets: ReadonlyMap<string, Secret>,
  ): ReturnType<typeof compileProxyConfig> {
    const lookup: SecretLookup = (name) =>
      secrets.get(name) ?? (id === DEFAULT ? this.operatorSecrets(name) : undefined);
    return compileProxyConfig(proxyConfig, lookup, revision);
  }

  #compileNext(
    state: SandboxState,
    proxyConfig: ProxyConfig,
    { secrets, warnings }: { secrets: ReadonlyMap<string, Secret>; warnings: readonly Issue[] },
  ): Prepared | Invalid {
    const revision = state.revision + 1;
    const names = secretNamesOf(proxyConfig);
    const used = new Map([...secrets].filter(([name]) => names.includes(name)));
    const next = { ...state, revision, etag: newEtag(revision), proxyConfig, rejected: undefined, used };
    const compiled = this.compile(next, proxyConfig, secrets);
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
    const { revision, summary } = policy;
    this.#shared.log.info({ sandbox: next.id, revision, ...summary }, 'proxy_config applied');
  }

  /** The operator's document and secrets for `default`, active at once; an invalid document changes nothing. */
  applyOperators(ruled: RuledSandbox, document: unknown, secrets: SecretLookup): Applied {
    const state = { ...ruled.state, revision: ruled.active.revision };
    return this.#applyNow(ruled, secrets, () => this.prepare(state, document));
  }

  /** The active document again, with the operator's current secrets and the sandbox's own as they are active. */
  reapply(ruled: RuledSandbox, secrets: SecretLookup): Applied {
    const { proxyConfig, used, revision } = ruled.active;
    if (proxyConfig) {
      const state = { ...ruled.state, revision };
      const options = { secrets: used, warnings: [] };
      return this.#applyNow(ruled, secrets, () => this.#compileNext(state, proxyConfig, options));
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

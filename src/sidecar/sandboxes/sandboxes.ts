// Every sandbox of the process: what is kept of it, what is in force, and what runs. `default` is always there and comes
// by the main listener. How they are changed at run time is in sandbox-changes.ts, how they come back after a restart in
// sandbox-restore.ts; what the operator's files say of `default` comes in here.
import type { ListenAddress } from '../../base/listen-address.ts';
import type { Issue } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { type SecretLookup, compileProxyConfig, secretNamesOf } from '../../policy/compile.ts';
import type { Policy } from '../../policy/policy.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { type Admission, createAdmission } from '../../proxy/accept/admission.ts';
import { type Listener, createListener } from '../../proxy/accept/listener.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { type SandboxState, encodeSandboxState, newEtag, newSandboxState } from '../state/sandbox-state.ts';
import { type Sandbox, type SharedParts, createSandbox } from './sandbox.ts';
import type { Durability } from '../state/state-file.ts';
import type { StateStore } from '../state/state-store.ts';

export type Applied =
  | { readonly ok: true; readonly revision: number; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** The part of a state by which requests are judged. Nothing else of it has two versions. */
export type InForce = Pick<SandboxState, 'revision' | 'etag' | 'proxyConfig' | 'used'>;

/** Without the rest: a secret that was deleted meanwhile would live on in it. */
export function inForceOf({ revision, etag, proxyConfig, used }: SandboxState): InForce {
  return { revision, etag, proxyConfig, used };
}

export type Entry = {
  /** What is kept of it. */
  state: SandboxState;
  /** What requests are judged by: as kept, but for `default` while a document of the operator's stands above it. */
  inForce: InForce;
  /** Counts what it is made of: a change that was judged by an earlier count is judged anew. */
  version: number;
  readonly sandbox: Sandbox;
  readonly admission: Admission;
  /** Its own, once it is open. */
  listener: Listener | undefined;
  /** False until it is kept: what a start would not find lets nobody in. */
  isAdmitting: boolean;
  /** Why it has served nobody since the start. */
  failure: string | undefined;
};

/** A document that passed, and what became of it; to be put in force when it is kept. */
export type Prepared = {
  readonly ok: true;
  readonly next: SandboxState;
  readonly policy: Policy;
  readonly warnings: readonly Issue[];
};

export type Preparation = Prepared | { readonly ok: false; readonly issues: readonly Issue[] };

export type Sandboxes = {
  readonly main: Admission;
  readonly shared: SharedParts;
  readonly store: StateStore | undefined;
  get(id: string): Entry | undefined;
  all(): readonly Entry[];
  readonly default: Entry;
  /** Whether the operator's files give a secret of this name, for `default`. */
  isOperators(name: string): boolean;
  /** The operator's secrets of now. */
  setOperators(secrets: SecretLookup): void;
  /** The operator's own document and secrets for `default`, put in force at once and not kept. */
  applyOperators(document: unknown, secrets: SecretLookup): Applied;
  /** The document of `default` once more, with the operator's secrets of now and its own as they are in force. */
  reapply(secrets: SecretLookup): Applied;
  /** Validates and compiles without effect. An opaque value that the document leaves out is the one of `stored`. */
  prepare(state: SandboxState, document: unknown, stored?: ProxyConfig): Preparation;
  /** The policy of `config` with `secrets`, which for `default` the operator's complete. */
  compile(state: SandboxState, config: ProxyConfig, secrets: ReadonlyMap<string, Secret>): Compilation;
  /** From here on `next` is what is kept and in force. */
  adopt(entry: Entry, prepared: Pick<Prepared, 'next' | 'policy'>): void;
  /** Nobody is let in before `admit`. */
  add(state: SandboxState): Entry;
  admit(entry: Entry): void;
  openListener(entry: Entry, at: ListenAddress): Promise<void>;
  /** Cuts its clients and forgets it. */
  drop(entry: Entry): Promise<void>;
  /** If it rejects, what was kept before still is. */
  keep(state: SandboxState): Promise<void>;
  forget(id: string): Promise<void>;
  close(): Promise<void>;
};

type Compilation = ReturnType<typeof compileProxyConfig>;

export const DEFAULT = 'default' as const;

export function createSandboxes(options: {
  shared: SharedParts;
  /** The token of the main listener's own clients. */
  token: Secret | undefined;
  store: StateStore | undefined;
}): Sandboxes {
  const { shared, token, store } = options;
  const { config, log, listeners } = shared;
  const entries = new Map<string, Entry>();
  let operators: SecretLookup = () => undefined;

  const own = createSandbox(DEFAULT, shared);
  const main = createAdmission({
    own: own.context,
    isOpen: () => token === undefined,
    allowClients: config.allowClients,
  });
  if (token) main.add(token, own.context);
  const ofDefault = register(newSandboxState(DEFAULT), own, main);
  ofDefault.isAdmitting = true;

  function register(state: SandboxState, sandbox: Sandbox, admission: Admission): Entry {
    const rest = { listener: undefined, isAdmitting: false, failure: undefined, version: 0 };
    const entry: Entry = { state, inForce: inForceOf(state), sandbox, admission, ...rest };
    entries.set(state.id, entry);
    return entry;
  }

  function compile(
    { id, revision }: SandboxState,
    proxyConfig: ProxyConfig,
    secrets: ReadonlyMap<string, Secret>,
  ): Compilation {
    // Other sandboxes than `default` have what they were given and nothing else.
    const lookup: SecretLookup = (name) =>
      secrets.get(name) ?? (id === DEFAULT ? operators(name) : undefined);
    return compileProxyConfig(proxyConfig, lookup, revision);
  }

  function prepare(state: SandboxState, document: unknown, stored?: ProxyConfig): Preparation {
    const { allowWildcards } = config;
    const authored = parseProxyConfig(document, { allowWildcards, stored });
    if (!authored.ok) return authored;
    return compileNext(state, authored.value, { secrets: state.secrets, warnings: authored.warnings });
  }

  function compileNext(
    state: SandboxState,
    proxyConfig: ProxyConfig,
    by: { readonly secrets: ReadonlyMap<string, Secret>; readonly warnings: readonly Issue[] },
  ): Preparation {
    const revision = state.revision + 1;
    const used = valuesOf(secretNamesOf(proxyConfig), by.secrets);
    const next = { ...state, revision, etag: newEtag(revision), proxyConfig, refused: undefined, used };
    const compiled = compile(next, proxyConfig, by.secrets);
    return compiled.ok ? { ok: true, next, policy: compiled.value, warnings: by.warnings } : compiled;
  }

  function putInForce(entry: Entry, { next, policy }: Pick<Prepared, 'next' | 'policy'>): void {
    entry.inForce = inForceOf(next);
    entry.version += 1;
    entry.sandbox.putInForce(policy);
    log.info({ sandbox: next.id, revision: policy.revision, ...policy.summary }, 'proxy_config applied');
  }

  /** In force at once; a document at fault changes nothing, the operator's secrets neither. */
  function applyNow(secrets: SecretLookup, prepared: () => Preparation): Applied {
    const before = operators;
    operators = secrets;
    const result = prepared();
    if (!result.ok) {
      operators = before;
      return result;
    }
    putInForce(ofDefault, result);
    return { ok: true, revision: result.next.revision, warnings: result.warnings };
  }

  function noteDurability(id: string, durability: Durability | undefined): void {
    if (durability === 'in_doubt')
      log.error({ sandbox: id }, 'the disk did not confirm the state: it may be lost with the power');
  }

  return {
    main,
    shared,
    store,
    default: ofDefault,
    get: (id) => entries.get(id),
    all: () => [...entries.values()],
    isOperators: (name) => operators(name) !== undefined,
    setOperators(secrets) {
      operators = secrets;
    },
    applyOperators: (document, secrets) =>
      applyNow(secrets, () =>
        prepare({ ...ofDefault.state, revision: ofDefault.inForce.revision }, document),
      ),
    reapply(secrets) {
      const { proxyConfig, used, revision } = ofDefault.inForce;
      const state = { ...ofDefault.state, revision };
      if (proxyConfig)
        return applyNow(secrets, () => compileNext(state, proxyConfig, { secrets: used, warnings: [] }));
      operators = secrets;
      ofDefault.version += 1;
      return { ok: true, revision, warnings: [] };
    },
    prepare,
    compile,
    adopt(entry, prepared) {
      entry.state = prepared.next;
      putInForce(entry, prepared);
    },
    add(state) {
      const sandbox = createSandbox(state.id, shared, state.limits);
      if (!state.listen) return register(state, sandbox, main);
      const isOpen = (): boolean => entry.isAdmitting && entry.state.token === undefined;
      const { allowClients } = config;
      const entry = register(state, sandbox, createAdmission({ own: sandbox.context, isOpen, allowClients }));
      return entry;
    },
    admit(entry) {
      entry.isAdmitting = true;
      if (entry.state.token) entry.admission.add(entry.state.token, entry.sandbox.context);
    },
    async openListener(entry, at) {
      entry.listener = await createListener(at, entry.admission, shared.budget);
      listeners.add(entry.listener);
    },
    async drop(entry) {
      const { id, token: shown } = entry.state;
      entries.delete(id);
      // A sandbox that was never let in may have a token that is another's.
      if (shown && entry.isAdmitting) entry.admission.remove(shown);
      await Promise.all([entry.listener?.close(0), entry.sandbox.close()]);
      if (entry.listener) listeners.delete(entry.listener);
    },
    keep: async (state) => noteDurability(state.id, await store?.write(state.id, encodeSandboxState(state))),
    forget: async (id) => noteDurability(id, await store?.remove(id)),
    async close() {
      const { drainMs } = config.timeouts;
      await Promise.all([...entries.values()].map(({ listener }) => listener?.close(drainMs)));
      await Promise.all([...entries.values()].map(({ sandbox }) => sandbox.close()));
    },
  };
}

function valuesOf(
  names: readonly string[],
  secrets: ReadonlyMap<string, Secret>,
): ReadonlyMap<string, Secret> {
  return new Map([...secrets].filter(([name]) => names.includes(name)));
}

/** The code of a system error, or of the one behind it, which names no input. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = codeOf(error);
  return code === undefined ? causeOf(error.cause) : String(code);
}

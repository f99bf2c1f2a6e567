// Every sandbox of the process: what is kept of it, and what runs of it. `default` is always there and comes by the
// main listener. How they are changed is in sandbox-changes.ts; what the operator's files say of `default` comes in here.
import { type Issue } from '../base/schema.ts';
import type { Secret } from '../base/secret.ts';
import { type SecretLookup, compileProxyConfig, secretNamesOf } from '../policy/compile.ts';
import type { Policy } from '../policy/policy.ts';
import type { ProxyConfig } from '../policy/proxy-config-schema.ts';
import { parseProxyConfig } from '../policy/proxy-config.ts';
import { type Admission, createAdmission } from '../proxy/admission.ts';
import { type Listener, createListener } from '../proxy/listener.ts';
import type { ListenAddress } from './listen-address.ts';
import { isExposed } from './sandbox-document.ts';
import {
  type SandboxState,
  decodeSandboxState,
  describe,
  encodeSandboxState,
  newEtag,
  newSandboxState,
} from './sandbox-state.ts';
import { type Sandbox, type SharedParts, createSandbox } from './sandbox.ts';
import type { StateStore } from './state-store.ts';

export type Applied =
  | { readonly ok: true; readonly revision: number; readonly warnings: readonly Issue[] }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** A sandbox with what is kept of it. `listener`: its own, once it is open. */
export type Entry = {
  state: SandboxState;
  readonly sandbox: Sandbox;
  readonly admission: Admission;
  listener: Listener | undefined;
  /** False until it is kept: what a start would not find lets nobody in. */
  isAdmitting: boolean;
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
  get(id: string): Entry | undefined;
  all(): readonly Entry[];
  /** Reads what the store holds. Throws an Error that says which sandbox cannot be restored, and why. */
  restore(secrets: SecretLookup): Promise<void>;
  /** Opens the main listener and those of restored sandboxes. */
  listen(at: ListenAddress): Promise<void>;
  /** The operator's own document and secrets for `default`, put in force at once and not kept. */
  applyOperators(document: unknown, secrets: SecretLookup): Applied;
  /** The document of `default` once more, with the operator's secrets of now. */
  reapply(secrets: SecretLookup): Applied;
  /** Validates and compiles without effect. An opaque value that the document leaves out is the one of `state`. */
  prepare(state: SandboxState, document: unknown): Preparation;
  /** From here on `next` is what the sandbox is, and its requests are judged by `policy`. */
  adopt(entry: Entry, { next, policy }: Pick<Prepared, 'next' | 'policy'>): void;
  /** Nobody is let in before `admit`. */
  add(state: SandboxState): Entry;
  admit(entry: Entry): void;
  openListener(entry: Entry, at: ListenAddress): Promise<void>;
  /** Cuts its clients and forgets it. */
  drop(entry: Entry): Promise<void>;
  keep(state: SandboxState): Promise<void>;
  forget(id: string): Promise<void>;
  close(): Promise<void>;
};

export const DEFAULT = 'default' as const;

export function createSandboxes(options: {
  shared: SharedParts;
  /** The token of the main listener's own clients. */
  token: Secret | undefined;
  store: StateStore | undefined;
}): Sandboxes {
  const { shared, token, store } = options;
  const { config, log } = shared;
  const entries = new Map<string, Entry>();
  let operators: SecretLookup = () => undefined;

  const own = createSandbox(DEFAULT, shared);
  const main = createAdmission({
    own: own.context,
    isOpen: () => token === undefined,
    allowClients: config.allowClients,
  });
  if (token) main.add(token, own.context);
  entries.set(DEFAULT, {
    state: newSandboxState(DEFAULT),
    sandbox: own,
    admission: main,
    listener: undefined,
    isAdmitting: true,
  });
  const ofDefault = (): Entry => entries.get(DEFAULT) as Entry;

  /** What `default` may use beside its own secrets: the operator's. Other sandboxes have what they were given. */
  function lookupIn(id: string, secrets: ReadonlyMap<string, Secret>): SecretLookup {
    return (name) => secrets.get(name) ?? (id === DEFAULT ? operators(name) : undefined);
  }

  function adopt(entry: Entry, { next, policy }: Pick<Prepared, 'next' | 'policy'>): void {
    entry.state = next;
    entry.sandbox.putInForce(policy);
    log.info({ sandbox: next.id, revision: policy.revision, ...policy.summary }, 'proxy_config applied');
  }

  function compileNext(
    state: SandboxState,
    proxyConfig: ProxyConfig,
    warnings: readonly Issue[],
  ): Preparation {
    const revision = state.revision + 1;
    const compiled = compileProxyConfig(proxyConfig, lookupIn(state.id, state.secrets), revision);
    if (!compiled.ok) return compiled;
    const used = valuesOf(secretNamesOf(proxyConfig), state.secrets);
    const next = { ...state, revision, etag: newEtag(revision), proxyConfig, used };
    return { ok: true, next, policy: compiled.value, warnings };
  }

  function prepare(state: SandboxState, document: unknown, stored?: ProxyConfig): Preparation {
    const { allowWildcards } = config;
    const authored = parseProxyConfig(document, { allowWildcards, ...(stored && { stored }) });
    return authored.ok ? compileNext(state, authored.value, authored.warnings) : authored;
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
    adopt(ofDefault(), result);
    return { ok: true, revision: result.next.revision, warnings: result.warnings };
  }

  function restoreOne(id: string, content: string): void {
    const { allowWildcards } = config;
    const state = decodeSandboxState(content, { allowWildcards });
    if (typeof state === 'string') throw new Error(`the state of sandbox ${id} cannot be used: ${state}`);
    if (state.id !== id) throw new Error(`the state of sandbox ${id} is that of another`);
    assertDoor(state);
    const entry = id === DEFAULT ? ofDefault() : add(state);
    if (id !== DEFAULT) admit(entry);
    entry.state = state;
    const { proxyConfig, revision } = state;
    // The operator's file stands above what is kept.
    if (!proxyConfig || (id === DEFAULT && config.proxyConfigFile !== undefined)) return;
    // As it was: with the values of then, even where they have been deleted since.
    const compiled = compileProxyConfig(proxyConfig, lookupIn(id, state.used), revision);
    if (!compiled.ok)
      throw new Error(`the proxy_config of sandbox ${id} cannot be used: ${describe(compiled.issues)}`);
    adopt(entry, { next: state, policy: compiled.value });
  }

  /** What was judged when it was made is judged by the config of now: it says who may come in, and by what. */
  function assertDoor({ id, listen, token: shown }: SandboxState): void {
    if (listen && !shown && isExposed(listen, config))
      throw new Error(
        `the listener of sandbox ${id} (${listen.host}:${listen.port}) can be reached by others, and it asks for no ` +
          'token: set allow_clients or auth: "none" again, or remove its state',
      );
    if (!listen && shown && main.admit(shown))
      throw new Error(
        `the token of sandbox ${id} is that of the main listener: replace the one in auth.token_file`,
      );
  }

  function add(state: SandboxState): Entry {
    const sandbox = createSandbox(state.id, shared, state.limits);
    const entry: Entry = {
      state,
      sandbox,
      listener: undefined,
      admission: state.listen
        ? createAdmission({
            own: sandbox.context,
            isOpen: () => entry.isAdmitting && entry.state.token === undefined,
            allowClients: config.allowClients,
          })
        : main,
      isAdmitting: false,
    };
    entries.set(state.id, entry);
    return entry;
  }

  function admit(entry: Entry): void {
    entry.isAdmitting = true;
    if (entry.state.token) entry.admission.add(entry.state.token, entry.sandbox.context);
  }

  async function openListener(entry: Entry, at: ListenAddress): Promise<void> {
    entry.listener = await createListener(at, entry.admission, shared.budget);
    shared.listeners.proxies.add(entry.listener);
  }

  /** Throws an Error that says what to mend. */
  async function openAtStart(entry: Entry, at: ListenAddress): Promise<void> {
    try {
      await openListener(entry, at);
    } catch (cause) {
      const { id } = entry.state;
      const where = `${at.host.includes(':') ? `[${at.host}]` : at.host}:${at.port}`;
      const what = id === DEFAULT ? 'the proxy' : `the listener of sandbox ${id}`;
      const mend = id === DEFAULT ? 'change listen or SALLYPORT_LISTEN' : 'end what listens there';
      throw new Error(`${what} cannot be opened on ${where} (${codeOf(cause)}): ${mend}`, { cause });
    }
  }

  return {
    main,
    shared,
    prepare: (state, document) => prepare(state, document, state.proxyConfig),
    adopt,
    add,
    admit,
    openListener,
    get: (id) => entries.get(id),
    all: () => [...entries.values()],
    async restore(secrets) {
      operators = secrets;
      for (const [id, content] of (await store?.readAll()) ?? []) restoreOne(id, content);
    },
    async listen(at) {
      await openAtStart(ofDefault(), at);
      for (const entry of entries.values()) {
        const { listen } = entry.state;
        if (listen) await openAtStart(entry, listen);
      }
    },
    applyOperators: (document, secrets) => applyNow(secrets, () => prepare(ofDefault().state, document)),
    reapply(secrets) {
      const { state } = ofDefault();
      const { proxyConfig, revision } = state;
      if (proxyConfig) return applyNow(secrets, () => compileNext(state, proxyConfig, []));
      operators = secrets;
      return { ok: true, revision, warnings: [] };
    },
    async drop(entry) {
      const { id, token: shown } = entry.state;
      entries.delete(id);
      if (shown) entry.admission.remove(shown);
      await Promise.all([entry.listener?.close(0), entry.sandbox.close()]);
      if (entry.listener) shared.listeners.proxies.delete(entry.listener);
    },
    keep: async (state) => store?.write(state.id, encodeSandboxState(state)),
    forget: async (id) => store?.remove(id),
    async close() {
      await Promise.all(
        [...entries.values()].map(({ listener }) => listener?.close(config.timeouts.drainMs)),
      );
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
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  return 'code' in error ? String(error.code) : codeOf(error.cause);
}

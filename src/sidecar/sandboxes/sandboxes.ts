// All sandboxes of the process: their stored state, their rules and their running parts. `default` always exists and uses
// the main listener. Changes at run time are in sandbox-changes.ts; sandbox-restore.ts restores sandboxes at the start.
import type { ListenAddress } from '../../base/listen-address.ts';
import type { Secret } from '../../base/secret.ts';
import { nextTurn } from '../../base/steps.ts';
import { type Admission, createAdmission } from '../../proxy/accept/admission.ts';
import { type Listener, createListener } from '../../proxy/accept/listener.ts';
import type { CertificateAuthority } from '../../tls/certificate-authority.ts';
import { codeOf } from '../../tls/pem-files.ts';
import {
  type SandboxState,
  encodeSandboxState,
  loadAuthority,
  newSandboxState,
} from '../state/sandbox-state.ts';
import type { Durability } from '../state/state-files.ts';
import type { StateStore } from '../state/state-store.ts';
import type { HandedOverListener, HandedOverListeners } from './handed-over-listeners.ts';
import { DEFAULT, type RuledSandbox, SandboxRules, rulesOf } from './sandbox-rules.ts';
import { Sandbox, type SharedParts } from './sandbox.ts';

export type Entry = RuledSandbox & {
  readonly admission: Admission;
  /** The sandbox's own listener, once it is open. */
  listener: Listener | undefined;
  /** False until the state is stored: a sandbox that would not exist after a restart must not admit a client. */
  isAdmitting: boolean;
  /** Why the sandbox is disabled: it could not be restored at the start. */
  failure: string | undefined;
  /** The parent process opened its listener. */
  readonly handedOver: HandedOverListener | undefined;
};

export class Sandboxes {
  readonly shared: SharedParts;
  readonly rules: SandboxRules;
  /** Decides which sandbox a client of the main listener belongs to. */
  readonly main: Admission;
  readonly default: Entry;
  /** Undefined: the config allows no listeners of the parent process. */
  readonly handedOver: HandedOverListeners | undefined;
  readonly #entries = new Map<string, Entry>();
  readonly #store: StateStore | undefined;

  /** `token` is required on the main listener; undefined: clients without a token belong to `default`. */
  constructor(
    shared: SharedParts,
    token: Secret | undefined,
    {
      store,
      handedOver,
    }: { readonly store?: StateStore | undefined; readonly handedOver?: HandedOverListeners | undefined },
  ) {
    this.shared = shared;
    this.handedOver = handedOver;
    this.rules = new SandboxRules(shared);
    this.#store = store;
    const sandbox = new Sandbox(DEFAULT, shared);
    const { allowClients } = shared.config;
    this.main = createAdmission({ own: sandbox.context, isOpen: () => token === undefined, allowClients });
    if (token) this.main.add(token, sandbox.context);
    this.default = this.#register(newSandboxState(DEFAULT), sandbox, this.main);
    this.default.isAdmitting = true;
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  all(): readonly Entry[] {
    return [...this.#entries.values()];
  }

  /** The sandbox admits no client before admit() is called. */
  add(state: SandboxState, handedOver?: HandedOverListener): Entry {
    const sandbox = new Sandbox(state.id, this.shared, {
      limits: state.limits,
      ca: this.#ownAuthority(state),
    });
    if (!state.listen) return this.#register(state, sandbox, this.main);
    const isOpen = (): boolean => entry.isAdmitting && entry.state.token === undefined;
    // In another namespace the addresses of clients mean nothing here.
    const allowClients = handedOver ? undefined : this.shared.config.allowClients;
    const admission = createAdmission({ own: sandbox.context, isOpen, allowClients });
    const entry = this.#register(state, sandbox, admission, handedOver);
    return entry;
  }

  admit(entry: Entry): void {
    entry.isAdmitting = true;
    if (entry.state.token) entry.admission.add(entry.state.token, entry.sandbox.context);
  }

  async openListener(entry: Entry, at: ListenAddress): Promise<void> {
    const { budget, listeners } = this.shared;
    entry.listener = await createListener(entry.handedOver ?? at, entry.admission, budget);
    // Its address is one of another namespace.
    if (entry.handedOver) return;
    listeners.add(entry.listener);
  }

  /** Closes the connections of the sandbox and removes it from memory; its stored state is unchanged. */
  async drop(entry: Entry): Promise<void> {
    const { id, token } = entry.state;
    this.#entries.delete(id);
    // A sandbox that never admitted clients may have the token of another sandbox.
    if (token && entry.isAdmitting) entry.admission.remove(token);
    await Promise.all([entry.listener?.close(0), entry.sandbox.close()]);
    entry.handedOver?.release();
    if (entry.listener) this.shared.listeners.delete(entry.listener);
    const { ca } = entry.sandbox;
    if (ca !== this.shared.ca) this.shared.trust.ownKeys.delete(ca.spkiSha256);
  }

  async close(): Promise<void> {
    const { drainMs } = this.shared.config.timeouts;
    this.handedOver?.close();
    await Promise.all(this.all().map(({ listener }) => listener?.close(drainMs)));
    await Promise.all(this.all().map(({ sandbox }) => sandbox.close()));
  }

  /** The encoded state of each stored sandbox, by id. */
  async readStored(): Promise<ReadonlyMap<string, string>> {
    return (await this.#store?.readAll()) ?? new Map();
  }

  /** If it rejects, the previous state is still stored. */
  async save(state: SandboxState): Promise<void> {
    const content = encodeSandboxState(state);
    // Encoding and sealing a megabyte take some milliseconds each: between them the proxy serves.
    await nextTurn();
    this.#logIfInDoubt(state.id, await this.#store?.write(state.id, content));
  }

  /** If it rejects, the state is still stored. */
  async removeStored(id: string): Promise<void> {
    this.#logIfInDoubt(id, await this.#store?.remove(id));
  }

  /** A stored one may have become unusable: then startSandbox admits no client, and that of the process signs nothing. */
  #ownAuthority({ ca }: SandboxState): CertificateAuthority | undefined {
    const loaded = ca && loadAuthority(ca);
    if (loaded === undefined || !('spkiSha256' in loaded)) return undefined;
    this.shared.trust.ownKeys.add(loaded.spkiSha256);
    return loaded;
  }

  #logIfInDoubt(id: string, durability: Durability | undefined): void {
    if (durability === 'in_doubt')
      this.shared.log.error(
        { sandbox: id },
        'the disk did not confirm the write: a power failure may lose it',
      );
  }

  #register(
    state: SandboxState,
    sandbox: Sandbox,
    admission: Admission,
    handedOver?: HandedOverListener,
  ): Entry {
    const rest = { listener: undefined, isAdmitting: false, failure: undefined, version: 0 };
    const entry: Entry = { state, active: rulesOf(state), sandbox, admission, handedOver, ...rest };
    this.#entries.set(state.id, entry);
    return entry;
  }
}

/** The code of a system error, or of its cause. Not the message, which may quote input. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = codeOf(error);
  // Node has no code of its own for the lock of another process; the log names that process.
  if (code === 'ERR_SQLITE_ERROR') return 'another process may have its lock';
  return code === undefined ? causeOf(error.cause) : String(code);
}

// Changes sandboxes at run time: one change at a time, each atomic, stored before it is active. A change that cannot be
// stored is not made. The results are values; the admin API maps them to HTTP.
import {
  type AppliedConfig,
  type Change,
  type Expected,
  type Problem,
  done,
  refused,
} from '../../admin/target.ts';
import { type Issue, type Loc, prefixed } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { finishInSlices } from '../../base/steps.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { maxSecrets } from '../secret-files.ts';
import type { SandboxState } from '../state/sandbox-state.ts';
import type { DocumentParser } from './document-parser.ts';
import { type ChangedEntry, TOKEN_TAKEN, createFromDocument, issueToken } from './sandbox-creation.ts';
import { parseSandboxChange } from './sandbox-document.ts';
import { startSandbox } from './sandbox-restore.ts';
import { type ActiveRules, DEFAULT, type Prepared } from './sandbox-rules.ts';
import { type Entry, type Sandboxes, causeOf } from './sandboxes.ts';

export class SandboxChanges {
  readonly #sandboxes: Sandboxes;
  readonly #parser: Pick<DocumentParser, 'proxyConfig'>;
  readonly #queue = new WorkQueue();

  constructor(sandboxes: Sandboxes, parser: Pick<DocumentParser, 'proxyConfig'>) {
    this.#sandboxes = sandboxes;
    this.#parser = parser;
  }

  apply(id: string, document: unknown, expected: Expected): Promise<Change<AppliedConfig>> {
    return this.#changing(id, (entry) => this.#apply(entry, document, expected));
  }

  /** null deletes. The active rules keep their values until a proxy_config is applied. */
  changeSecrets(id: string, changes: ReadonlyMap<string, Secret | null>): Promise<Change<Entry>> {
    return this.#changing(id, async (entry) => {
      const next = { ...entry.state, secrets: mergeSecrets(entry.state.secrets, changes) };
      const tooMuch = sizeError(next.secrets);
      if (tooMuch) return refused({ kind: 'invalid', issues: [tooMuch] });
      const failed = await this.#save(next);
      if (failed) return refused(failed);
      entry.state = next;
      return done(entry);
    });
  }

  create(document: unknown): Promise<Change<ChangedEntry>> {
    return this.#inOrder(() =>
      createFromDocument(this.#sandboxes, document, {
        prepare: (state, proxyConfig) => this.#prepare(state, proxyConfig, { loc: ['proxy_config'] }),
        save: (state) => this.#save(state),
      }),
    );
  }

  change(id: string, document: unknown): Promise<Change<ChangedEntry>> {
    return this.#changing(id, async (entry) =>
      id === DEFAULT ? refused(PROTECTED) : this.#change(entry, document),
    );
  }

  remove(id: string): Promise<Change<undefined>> {
    return this.#changing(id, async (entry) => {
      if (id === DEFAULT) return refused(PROTECTED);
      const failed = await this.#stored(this.#sandboxes.removeStored(id), id);
      if (failed) return refused(failed);
      await this.#sandboxes.drop(entry);
      return done(undefined);
    });
  }

  /** One change at a time, whatever the sandbox: each sees the result of the one before it. */
  #inOrder<T>(act: () => Promise<Change<T>>): Promise<Change<T>> {
    return this.#queue.run(async () => (this.#sandboxes.shared.isDraining() ? refused(STOPPING) : act()));
  }

  #changing<T>(id: string, act: (entry: Entry) => Promise<Change<T>>): Promise<Change<T>> {
    return this.#inOrder(async () => {
      const entry = this.#sandboxes.get(id);
      return entry ? act(entry) : refused({ kind: 'not_found', message: `There is no sandbox ${id}` });
    });
  }

  #save(state: SandboxState): Promise<Problem | undefined> {
    return this.#stored(this.#sandboxes.save(state), state.id);
  }

  async #stored(operation: Promise<void>, id: string): Promise<Problem | undefined> {
    try {
      await operation;
      return undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown error';
      this.#sandboxes.shared.log.error({ sandbox: id, reason }, 'the state could not be written');
      const message = `The state could not be written (${causeOf(error)}); nothing was changed`;
      return { kind: 'storage_failed', message };
    }
  }

  /**
   * Validates and compiles a proxy_config without effect and without holding up the event loop: the operator's files may be
   * read again meanwhile. An opaque value that the document omits is taken from `stored`.
   */
  async #prepare(
    state: SandboxState,
    document: unknown,
    { stored, loc = [] }: { readonly stored?: ProxyConfig | undefined; readonly loc?: Loc },
  ): Promise<Change<Prepared>> {
    const { rules, shared } = this.#sandboxes;
    const { allowWildcards, reservedHost } = shared.config;
    const parsed = await this.#parser.proxyConfig(document, { allowWildcards, reservedHost, stored });
    if (parsed === undefined) return refused(PARSER_FAILED);
    const prepared = parsed.ok ? await finishInSlices(rules.prepare(state, parsed)) : parsed;
    if (shared.isDraining()) return refused(STOPPING);
    return prepared.ok
      ? done(prepared)
      : refused({ kind: 'invalid', issues: prefixed(prepared.issues, loc) });
  }

  async #apply(entry: Entry, document: unknown, expected: Expected): Promise<Change<AppliedConfig>> {
    const { active, version } = entry;
    if (isStale(active, expected)) return refused(stale(active));
    const base = { ...entry.state, revision: active.revision };
    const result = await this.#prepare(base, document, { stored: active.proxyConfig });
    // It was compiled from what the operator has replaced meanwhile.
    if (entry.version !== version) return this.#apply(entry, document, expected);
    if (!result.ok) return result;
    const prepared = result.value;
    const failed = await this.#save(prepared.next);
    if (failed) return refused(failed);
    // The operator's files were read again meanwhile: this document must be checked again.
    if (entry.version !== version)
      return this.#undoUnlessDone(entry, await this.#apply(entry, document, expected));
    this.#sandboxes.rules.adopt(entry, prepared);
    const { revision, etag } = prepared.next;
    return done({ revision, etag, warnings: [...prepared.warnings, ...(await this.#warningsOf(entry))] });
  }

  /** Something was stored for `result`: if it was rejected after all, the next start must not find that. */
  async #undoUnlessDone<T>(entry: Entry, result: Change<T>): Promise<Change<T>> {
    const failed = result.ok ? undefined : await this.#save(entry.state);
    return failed ? refused(IN_DOUBT) : result;
  }

  async #warningsOf(entry: Entry): Promise<readonly Issue[]> {
    const { config } = this.#sandboxes.shared;
    if (entry.state.id === DEFAULT) return config.proxyConfigFile === undefined ? [] : [FILE_WINS];
    if (entry.failure === undefined) return [];
    // With usable rules it may start again.
    await this.#restart(entry);
    return entry.failure === undefined ? [] : [{ loc: [], msg: entry.failure, type: 'closed' }];
  }

  async #restart(entry: Entry): Promise<void> {
    entry.failure = undefined;
    await startSandbox(this.#sandboxes, entry);
  }

  async #change(entry: Entry, document: unknown): Promise<Change<ChangedEntry>> {
    const { state } = entry;
    const parsed = parseSandboxChange(document, this.#sandboxes.shared.config);
    if (!parsed.ok) return refused({ kind: 'invalid', issues: parsed.issues });
    const token = issueToken(parsed.value.token, entry.admission, entry.sandbox.context);
    if (token === 'taken') return refused({ kind: 'invalid', issues: [TOKEN_TAKEN] });
    const limits = { ...state.limits, ...parsed.value.limits };
    const next = { ...state, limits, token: token?.secret ?? state.token };
    const failed = await this.#save(next);
    if (failed) return refused(failed);
    entry.state = next;
    entry.sandbox.setLimits(limits);
    if (token && entry.isAdmitting) await replaceToken(entry, state.token, token.secret);
    // The token may be why it is disabled. Without its own rules it must not admit clients.
    else if (token && hasItsRules(entry)) await this.#restart(entry);
    return done({ entry, token: token?.generated, warnings: [] });
  }
}

/** False if its stored rules could not be used at the start. */
function hasItsRules({ sandbox, active }: Entry): boolean {
  return sandbox.context.policy().revision === active.revision;
}

/** A token is replaced because its holder must lose access: clients that used the old one are disconnected. */
async function replaceToken(entry: Entry, old: Secret | undefined, token: Secret): Promise<void> {
  const { admission, sandbox } = entry;
  if (old) admission.remove(old);
  admission.add(token, sandbox.context);
  await sandbox.disconnect();
}

function mergeSecrets(
  secrets: ReadonlyMap<string, Secret>,
  changes: ReadonlyMap<string, Secret | null>,
): ReadonlyMap<string, Secret> {
  const merged = new Map<string, Secret | null>([...secrets, ...changes]);
  return new Map([...merged].flatMap(([name, value]) => (value ? [[name, value]] : [])));
}

/** RFC 9110 §13.1.1: no tag that the caller names is the active one. */
function isStale(active: ActiveRules, { etags, etag }: Expected): boolean {
  if (etag !== undefined && etag !== active.etag) return true;
  if (etags === undefined) return false;
  return etags === '*' ? active.revision === 0 : !etags.includes(active.etag);
}

function stale({ revision }: ActiveRules): Problem {
  return { kind: 'stale', message: `Revision ${revision} is active: read it and base the change on it` };
}

const PROTECTED: Problem = {
  kind: 'protected',
  message:
    'The config of the operator sets the listener, token and limits of the sandbox "default", which cannot be deleted: change the config',
};

const FILE_WINS: Issue = {
  loc: [],
  msg: "Active until the next start or reload, which read the operator's file again",
  type: 'file_wins',
};

const STOPPING: Problem = {
  kind: 'busy',
  message: 'The process is stopping: send the request to its successor',
};

const PARSER_FAILED: Problem = {
  kind: 'parser_failed',
  message: 'The parser ended, so nothing was changed: send the document again, or a smaller one',
};

const IN_DOUBT: Problem = {
  kind: 'storage_failed',
  message: 'Rejected, and the stored state could not be restored: apply a document before the next start',
};

// Each change seals all of them at once, in one turn of the event loop that also runs the proxy.
const MAX_SECRET_CHARS = 1_048_576;

function sizeError(secrets: ReadonlyMap<string, Secret>): Issue | undefined {
  if (secrets.size > maxSecrets)
    return { loc: [], msg: `At most ${maxSecrets} secrets can be stored`, type: 'too_long' };
  const chars = secrets.values().reduce((sum, { length }) => sum + length, 0);
  if (chars <= MAX_SECRET_CHARS) return undefined;
  const msg = `The secrets have more than ${MAX_SECRET_CHARS} characters in total: delete some first`;
  return { loc: [], msg, type: 'too_long' };
}

// How sandboxes are changed at run time: one writer after the other, each change whole, kept before it is in force.
// A change that cannot be kept is not made. It answers with values; what they mean over HTTP is the admin API's part.
import {
  type AppliedConfig,
  type Change,
  type Expected,
  type Problem,
  done,
  refused,
} from '../../admin/target.ts';
import type { Issue } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import { type Made, createSandboxMaker } from './sandbox-creation.ts';
import { parseSandboxChange } from './sandbox-document.ts';
import { startSandbox } from './sandbox-restore.ts';
import type { SandboxState } from '../state/sandbox-state.ts';
import { TOKEN_TAKEN, givenToken } from './sandbox-token.ts';
import { DEFAULT, type Entry, type InForce, type Sandboxes, causeOf } from './sandboxes.ts';
import { maxSecrets } from '../secret-files.ts';

export type SandboxChanges = {
  apply(id: string, document: unknown, expected: Expected): Promise<Change<AppliedConfig>>;
  /** null deletes. What is in force stays as it is until a proxy_config is applied. */
  changeSecrets(id: string, changes: ReadonlyMap<string, Secret | null>): Promise<Change<Entry>>;
  create(document: unknown): Promise<Change<Made>>;
  change(id: string, document: unknown): Promise<Change<Made>>;
  remove(id: string): Promise<Change<undefined>>;
};

export function createSandboxChanges(sandboxes: Sandboxes): SandboxChanges {
  const { config, log, isDraining } = sandboxes.shared;
  const create = createSandboxMaker(sandboxes, keep);
  const queue = new WorkQueue();

  /** One writer at a time, whatever the sandbox: each sees what the one before it left. */
  function inTurn<T>(act: () => Promise<Change<T>>): Promise<Change<T>> {
    return queue.run('sandboxes', async () => (isDraining() ? refused(STOPPING) : act()));
  }

  async function stored(what: Promise<void>, id: string): Promise<Problem | undefined> {
    try {
      await what;
      return undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown error';
      log.error({ sandbox: id, reason }, 'the state could not be written');
      const message = `The state could not be written (${causeOf(error)}); nothing was changed`;
      return { kind: 'storage_failed', message };
    }
  }

  function keep(state: SandboxState): Promise<Problem | undefined> {
    return stored(sandboxes.keep(state), state.id);
  }

  /** Something was kept for `result`, which may be a refusal: then the next start must not find it. */
  async function undoneUnlessDone<T>(entry: Entry, result: Change<T>): Promise<Change<T>> {
    const failed = result.ok ? undefined : await keep(entry.state);
    return failed ? refused(IN_DOUBT) : result;
  }

  async function apply(id: string, document: unknown, expected: Expected): Promise<Change<AppliedConfig>> {
    const entry = sandboxes.get(id);
    if (!entry) return refused(notFound(id));
    const { inForce, version } = entry;
    if (isStale(inForce, expected)) return refused(stale(inForce));
    const base = { ...entry.state, revision: inForce.revision };
    const prepared = sandboxes.prepare(base, document, inForce.proxyConfig);
    if (!prepared.ok) return refused({ kind: 'invalid', issues: prepared.issues });
    const failed = await keep(prepared.next);
    if (failed) return refused(failed);
    // The operator's files were read again in the meantime: this document is judged anew.
    if (entry.version !== version) return undoneUnlessDone(entry, await apply(id, document, expected));
    sandboxes.adopt(entry, prepared);
    const { revision, etag } = prepared.next;
    return done({ revision, etag, warnings: [...prepared.warnings, ...(await warningsOf(entry))] });
  }

  async function warningsOf(entry: Entry): Promise<readonly Issue[]> {
    if (entry.state.id === DEFAULT) return config.proxyConfigFile === undefined ? [] : [FILE_WINS];
    if (entry.failure === undefined) return [];
    // With rules that can be used it may open again.
    await startAgain(entry);
    return entry.failure === undefined ? [] : [{ loc: [], msg: entry.failure, type: 'closed' }];
  }

  async function startAgain(entry: Entry): Promise<void> {
    entry.failure = undefined;
    await startSandbox(sandboxes, entry);
  }

  async function changeSecrets(
    id: string,
    changes: ReadonlyMap<string, Secret | null>,
  ): Promise<Change<Entry>> {
    const entry = sandboxes.get(id);
    if (!entry) return refused(notFound(id));
    const { state } = entry;
    const next = { ...state, secrets: mergeSecrets(state.secrets, changes) };
    const tooMuch = sizeError(next.secrets);
    if (tooMuch) return refused({ kind: 'invalid', issues: [tooMuch] });
    const failed = await keep(next);
    if (failed) return refused(failed);
    entry.state = next;
    return done(entry);
  }

  async function change(id: string, document: unknown): Promise<Change<Made>> {
    const entry = sandboxes.get(id);
    if (!entry) return refused(notFound(id));
    if (id === DEFAULT) return refused(PROTECTED);
    const parsed = parseSandboxChange(document, config);
    if (!parsed.ok) return refused({ kind: 'invalid', issues: parsed.issues });
    const token = givenToken(parsed.value.token, entry.admission, entry.sandbox.context);
    if (token === 'taken') return refused({ kind: 'invalid', issues: [TOKEN_TAKEN] });
    const { state } = entry;
    const limits = { ...state.limits, ...parsed.value.limits };
    const next = { ...state, limits, token: token?.secret ?? state.token };
    const failed = await keep(next);
    if (failed) return refused(failed);
    entry.state = next;
    entry.sandbox.limit(limits);
    if (token && entry.isAdmitting) await exchangeToken(entry, state.token, token.secret);
    // The token may be what kept it closed. Under rules that are not its own nobody is let in.
    else if (token && hasItsRules(entry)) await startAgain(entry);
    return done({ entry, token: token?.reported, warnings: [] });
  }

  async function remove(id: string): Promise<Change<undefined>> {
    const entry = sandboxes.get(id);
    if (!entry) return refused(notFound(id));
    if (id === DEFAULT) return refused(PROTECTED);
    const failed = await stored(sandboxes.forget(id), id);
    if (failed) return refused(failed);
    await sandboxes.drop(entry);
    return done(undefined);
  }

  return {
    apply: (id, document, expected) => inTurn(() => apply(id, document, expected)),
    changeSecrets: (id, changes) => inTurn(() => changeSecrets(id, changes)),
    create: (document) => inTurn(() => create(document)),
    change: (id, document) => inTurn(() => change(id, document)),
    remove: (id) => inTurn(() => remove(id)),
  };
}

/** False where what it had in force cannot be used since the start. */
function hasItsRules({ sandbox, inForce }: Entry): boolean {
  return sandbox.context.policy().revision === inForce.revision;
}

/** A token is changed because somebody should not have it any more: whoever came in by it leaves. */
async function exchangeToken(entry: Entry, old: Secret | undefined, token: Secret): Promise<void> {
  const { admission, sandbox } = entry;
  if (old) admission.remove(old);
  admission.add(token, sandbox.context);
  await sandbox.disconnect();
}

function mergeSecrets(
  secrets: ReadonlyMap<string, Secret>,
  changes: ReadonlyMap<string, Secret | null>,
): ReadonlyMap<string, Secret> {
  const merged = new Map(secrets);
  for (const [name, value] of changes) {
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  return merged;
}

/** RFC 9110 §13.1.1: none of the tags that the writer names is the one in force. */
function isStale(state: InForce, { etags, etag }: Expected): boolean {
  if (etag !== undefined && etag !== state.etag) return true;
  if (etags === undefined) return false;
  return etags === '*' ? state.revision === 0 : !etags.includes(state.etag);
}

function stale({ revision }: InForce): Problem {
  return { kind: 'stale', message: `Revision ${revision} is in force: read it, and write on top of it` };
}

function notFound(id: string): Problem {
  return { kind: 'not_found', message: `There is no sandbox ${id}` };
}

const PROTECTED: Problem = {
  kind: 'protected',
  message: 'The sandbox "default" is the operator\'s: its listener, token and limits stand in the config',
};

const FILE_WINS: Issue = {
  loc: [],
  msg: "In force until the next start or SIGHUP: then the operator's file is read again",
  type: 'file_wins',
};

const STOPPING: Problem = { kind: 'busy', message: 'The process is stopping: ask the one that follows it' };

const IN_DOUBT: Problem = {
  kind: 'storage_failed',
  message: 'Refused, and the state could not be put back: apply a document before the next start',
};

// Each change seals all of them at once, in one turn of the event loop that serves the proxy.
const MAX_SECRET_CHARS = 1_048_576;

/** Why so many, or so large, secrets are not kept for one sandbox. */
function sizeError(secrets: ReadonlyMap<string, Secret>): Issue | undefined {
  if (secrets.size > maxSecrets)
    return { loc: [], msg: `At most ${maxSecrets} secrets may be kept`, type: 'too_long' };
  let chars = 0;
  for (const { length } of secrets.values()) chars += length;
  if (chars <= MAX_SECRET_CHARS) return undefined;
  const msg = `The secrets should have at most ${MAX_SECRET_CHARS} characters in all; delete some first`;
  return { loc: [], msg, type: 'too_long' };
}

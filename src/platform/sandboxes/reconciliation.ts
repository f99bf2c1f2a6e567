// One step for one box: a call of the runtime, outside of any transaction, and the row as it is then. Each step may be cut off at any
// point and is decided anew afterwards, because the calls of the runtime are idempotent and a row is moved from an expected state.
import { describeBug, type Log } from '../../base/log.ts';
import { type Runtime, RuntimeError } from '../runtime/contract.ts';
import type { Store } from '../store/database.ts';
import { deleteRow, type Move, moveBox } from './box-moves.ts';
import type { BoxSecrets } from './box-secrets.ts';
import type { Step } from './box-states.ts';
import { type BoxRow, toNumber } from './boxes.ts';
import { notify } from '../store/postgres/notifications.ts';

export type StepParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly runtime: Runtime;
  readonly secrets: BoxSecrets;
  readonly log: Log;
  /** For a call of the runtime: one that takes longer is tried again. */
  readonly callMs: number;
};

/** Resolves with whether the box should be looked at again at once. */
export async function takeStep(parts: StepParts, box: BoxRow, step: Step): Promise<boolean> {
  const { runtime, store } = parts;
  const bounded = <T>(call: Promise<T>): Promise<T> => within(call, parts.callMs);
  switch (step.kind) {
    case 'start':
    case 'refit':
      return start(parts, box);
    case 'apply':
      return apply(parts, box);
    case 'stop':
      await bounded(runtime.stop(box.id));
      await move(parts, box, { from: box.status, to: 'stopped', reason: stopReason(box) });
      // Whoever asked for a start meanwhile gets it: the box is then found not to run.
      return true;
    case 'halt':
      await bounded(runtime.stop(box.id));
      return false;
    case 'remove':
      await bounded(runtime.remove(box.id));
      await deleteRow(store, box.id);
      return false;
    case 'lost':
      return move(parts, box, { from: 'ready', to: 'provisioning', reason: step.reason });
    case 'fail':
      return move(parts, box, failure('ready', 'runtime_failed', step.message));
  }
}

/** What a step that was rejected means for the box. Resolves as takeStep does. */
export async function handleRejection(
  parts: StepParts,
  box: BoxRow,
  step: Step,
  error: unknown,
): Promise<boolean> {
  const { log } = parts;
  const isStart = step.kind === 'start' || step.kind === 'refit';
  if (error instanceof RuntimeError && error.kind !== 'unavailable' && isStart) {
    const message = messageOf(error);
    if (box.status === 'provisioning')
      return move(parts, box, failure('provisioning', 'start_failed', message));
    return move(parts, box, failure('ready', 'runtime_failed', message));
  }
  const message = shorten(`${error instanceof RuntimeError ? messageOf(error) : FAILED}; it is tried again`);
  // Every few seconds: neither the log nor the database must fill up with it.
  if (box.status_message === message) return false;
  if (!(error instanceof RuntimeError))
    log.error({ ...describeBug(error), box: box.id, step: step.kind }, 'a sandbox could not be reconciled');
  await update(parts, box, { status_message: message });
  return false;
}

const FAILED = 'The platform could not reach what runs sandboxes';

async function start(parts: StepParts, box: BoxRow): Promise<boolean> {
  const { runtime, secrets, store } = parts;
  const { db } = store;
  const policy = await secrets.openPolicy(db, box);
  const spec = {
    id: box.id,
    workspaceId: box.workspace_id,
    organizationId: await organizationOf(parts, box),
    name: box.name,
    snapshotId: undefined,
    envVars: await secrets.openEnv(db, box),
    limits: limitsOf(box),
    proxyToken: await secrets.openToken(db, box),
  };
  const started = await within(runtime.start(spec, policy), parts.callMs);
  if (started.appliedVersion < policy.version)
    throw new RuntimeError('unavailable', 'The proxy has not taken the rules yet');
  const set = {
    applied_version: policy.version,
    applied_token_version: box.token_version,
    proxy_url: started.proxyUrl ?? null,
    needs_proxy_token: started.needsProxyToken ?? false,
    ca_pem: started.caPem ?? null,
    status_message: started.statusMessage ?? null,
  };
  if (box.status === 'provisioning')
    return move(parts, box, { from: 'provisioning', to: 'ready', reason: 'started', set });
  await update(parts, box, set);
  return false;
}

async function apply(parts: StepParts, box: BoxRow): Promise<boolean> {
  const policy = await parts.secrets.openPolicy(parts.store.db, box);
  const { appliedVersion } = await within(parts.runtime.applyPolicy(box.id, policy), parts.callMs);
  // What the runtime says is bounded by what it was given.
  const applied_version = Math.min(appliedVersion, policy.version);
  if (applied_version > box.applied_version)
    await update(parts, box, { applied_version, status_message: null });
  return false;
}

type Columns = Partial<
  Pick<
    BoxRow,
    | 'applied_version'
    | 'applied_token_version'
    | 'proxy_url'
    | 'needs_proxy_token'
    | 'ca_pem'
    | 'status_message'
  >
>;

/** Of a box that has the same status still. */
async function update({ store }: StepParts, { id, status }: BoxRow, set: Columns): Promise<void> {
  await store.write(async (trx) => {
    await trx.updateTable('boxes').set(set).where('id', '=', id).where('status', '=', status).execute();
    await notify(trx, 'sandboxes', id);
  });
}

async function move(
  { store }: StepParts,
  box: BoxRow,
  to: Omit<Move, 'id' | 'workspaceId'>,
): Promise<boolean> {
  const { id, workspace_id: workspaceId } = box;
  const moved = await store.write((trx) => moveBox(trx, { id, workspaceId, ...to }));
  return moved !== undefined;
}

function failure(
  from: 'provisioning' | 'ready',
  reason: Move['reason'],
  message: string,
): Omit<Move, 'id' | 'workspaceId'> {
  return { from, to: 'failed', reason, set: { status_message: shorten(message) } };
}

function stopReason({ desired_reason: reason }: BoxRow): 'idle' | 'stop_requested' {
  return reason === 'idle' ? 'idle' : 'stop_requested';
}

async function organizationOf({ store }: StepParts, { workspace_id: id }: BoxRow): Promise<string> {
  const query = store.db.selectFrom('workspaces').select('organization_id').where('id', '=', id);
  return (await query.executeTakeFirstOrThrow()).organization_id;
}

function limitsOf({ cpu_millicores, mem_bytes, fs_capacity_bytes }: BoxRow) {
  const [memBytes, fsCapacityBytes] = [toNumber(mem_bytes), toNumber(fs_capacity_bytes)];
  return {
    ...(cpu_millicores === null ? {} : { cpuMillicores: cpu_millicores }),
    ...(memBytes === null ? {} : { memBytes }),
    ...(fsCapacityBytes === null ? {} : { fsCapacityBytes }),
  };
}

function messageOf({ message, issues: [first] }: RuntimeError): string {
  return first === undefined ? message : `${message}: ${first.loc.join('.')}: ${first.msg}`;
}

const MAX_MESSAGE = 2_000;

/** The runtime may quote the last lines of a log. PostgreSQL stores no U+0000. */
function shorten(message: string): string {
  const text = message.replaceAll('\0', '').toWellFormed();
  return text.length > MAX_MESSAGE ? `…${text.slice(-MAX_MESSAGE)}` : text;
}

/** A call that hangs is no longer waited for; the next one continues what it has done. */
export async function within<T>(call: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new RuntimeError('unavailable', 'What runs sandboxes does not respond')),
    ms,
  );
  try {
    return await Promise.race([call, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

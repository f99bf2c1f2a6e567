// One step for one box: a call of the runtime, outside of any transaction, and the row as it is then. Each step may be cut off at any
// point and is decided anew afterwards, because the calls of the runtime are idempotent and a row is moved from an expected state.
import { describeBug, type Log } from '../../../base/log.ts';
import { type Runtime, RuntimeError } from '../../runtime/contract.ts';
import type { Store, Transaction } from '../../store/database.ts';
import { announce, type Move, moveBox, removeRow } from '../box-moves.ts';
import type { PolicyParts } from '../box-policy.ts';
import type { BoxSecrets } from '../box-secrets.ts';
import type { Step } from '../box-states.ts';
import { type BoxRow, toNumber } from '../boxes.ts';
import { NOT_HELD } from '../sizes/box-sizes.ts';
import { LeaseLost, type MachineLease } from './lease.ts';
import { adoptProfile } from './profile-adoption.ts';

export type StepParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly runtime: Runtime;
  readonly secrets: BoxSecrets;
  readonly policies: PolicyParts;
  readonly lease: Pick<MachineLease, 'require' | 'fence'>;
  readonly log: Log;
  /** For a call of the runtime: one that takes longer is tried again. */
  readonly callMs: number;
};

/** Resolves with whether the box should be looked at again at once. */
export async function takeStep(parts: StepParts, box: BoxRow, step: Step): Promise<boolean> {
  const { id, status } = box;
  switch (step.kind) {
    case 'start':
    case 'refit':
      return start(parts, box);
    case 'apply':
      return apply(parts, box);
    case 'adopt':
      return adoptProfile(parts, box, step.version);
    case 'stop':
      await call(parts, (runtime) => runtime.stop(id));
      await move(parts, box, { from: status, to: 'stopped', reason: stopReason(box) });
      // Whoever asked for a start meanwhile gets it: the box is then found not to run.
      return true;
    case 'halt':
      await call(parts, (runtime) => runtime.stop(id));
      return false;
    case 'remove':
      await call(parts, (runtime) => runtime.remove(id));
      await write(parts, (trx) => removeRow(trx, id, 'removed'));
      return false;
    case 'lost':
      await move(parts, box, { from: 'ready', to: 'provisioning', reason: step.reason });
      return true;
    case 'fail':
      return settle(parts, box, failure('ready', 'runtime_failed', step.message));
  }
}

/** Throws LeaseLost in place of the call, where another process may make others by now. */
export async function call<T>(
  { lease, runtime, callMs }: Pick<StepParts, 'lease' | 'runtime' | 'callMs'>,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  lease.require();
  return within(work(runtime), callMs);
}

/** What a step that was rejected means for the box. Resolves as takeStep does. */
export async function handleRejection(
  parts: StepParts,
  box: BoxRow,
  step: Step,
  error: unknown,
): Promise<boolean> {
  const { log } = parts;
  if (error instanceof LeaseLost) throw error;
  const isStart = step.kind === 'start' || step.kind === 'refit';
  if (error instanceof RuntimeError && error.kind !== 'unavailable' && isStart) {
    const message = messageOf(error);
    if (box.status === 'provisioning')
      return settle(parts, box, failure('provisioning', 'start_failed', message));
    return settle(parts, box, failure('ready', 'runtime_failed', message));
  }
  if (error instanceof RuntimeError && error.kind === 'invalid_policy' && step.kind === 'apply') {
    const status_message = shorten(`${REJECTED}: ${messageOf(error)}`);
    await update(parts, box, { rejected_version: box.policy_version, status_message });
    return false;
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
const REJECTED = 'The proxy rejects the rules, and those before stay in effect until they are changed';

async function start(parts: StepParts, box: BoxRow): Promise<boolean> {
  const { secrets, store } = parts;
  const { db } = store;
  const policy = await secrets.openPolicy(db, box);
  const spec = {
    id: box.id,
    workspaceId: box.workspace_id,
    organizationId: await organizationOf(parts, box),
    name: box.name,
    snapshotId: box.snapshot_id ?? undefined,
    runtime: box.runtime ?? undefined,
    envVars: await secrets.openEnv(db, box),
    limits: limitsOf(box),
    proxyToken: await secrets.openToken(db, box),
  };
  requireCapacity(box, parts.runtime.kind);
  const started = await call(parts, (runtime) => runtime.start(spec, policy));
  requireCapacity(box, started.runtime);
  if (started.appliedVersion < policy.version)
    throw new RuntimeError('unavailable', 'The proxy has not taken the rules yet');
  const set = {
    runtime: started.runtime,
    // Somebody else stores its files: the default does not count.
    ...(started.runtime === 'attached' ? { fs_capacity_bytes: null } : {}),
    ...appliedColumns(box),
    applied_token_version: box.token_version,
    proxy_url: started.proxyUrl ?? null,
    needs_proxy_token: started.needsProxyToken ?? false,
    ca_pem: started.caPem ?? null,
    status_message: started.statusMessage ?? null,
  };
  if (box.status === 'provisioning')
    return settle(parts, box, { from: 'provisioning', to: 'ready', reason: 'started', set });
  await update(parts, box, set);
  return false;
}

/** The machine may have held storage when it took the box. */
function requireCapacity({ asks_capacity }: BoxRow, runtime: Runtime['kind']): void {
  if (asks_capacity && runtime === 'attached') throw new RuntimeError('failed', NOT_HELD);
}

async function apply(parts: StepParts, box: BoxRow): Promise<boolean> {
  const policy = await parts.secrets.openPolicy(parts.store.db, box);
  const { appliedVersion, statusMessage: status_message = null } = await call(parts, (runtime) =>
    runtime.applyPolicy(box.id, policy),
  );
  // A runtime that has an earlier version is asked again.
  if (appliedVersion >= policy.version) await update(parts, box, { ...appliedColumns(box), status_message });
  return false;
}

/** The row is as it was when its policy was opened, or is not written. */
function appliedColumns(box: BoxRow) {
  return {
    applied_version: box.policy_version,
    applied_profile_id: box.proxy_profile_id,
    applied_profile_version: box.profile_version,
  };
}

type Columns = Partial<
  Pick<
    BoxRow,
    | 'runtime'
    | 'fs_capacity_bytes'
    | 'applied_version'
    | 'applied_profile_id'
    | 'applied_profile_version'
    | 'applied_token_version'
    | 'rejected_version'
    | 'proxy_url'
    | 'needs_proxy_token'
    | 'ca_pem'
    | 'status_message'
  >
>;

/** What was done outside of it, as long as no other process does it. */
async function write<T>(
  { store, lease }: Pick<StepParts, 'store' | 'lease'>,
  work: (trx: Transaction) => Promise<T>,
): Promise<T> {
  return store.write(async (trx) => {
    await lease.fence(trx);
    return work(trx);
  });
}

/** Of a box that has the same status still. */
async function update(parts: StepParts, { id, status }: BoxRow, set: Columns): Promise<void> {
  await write(parts, async (trx) => {
    await trx.updateTable('boxes').set(set).where('id', '=', id).where('status', '=', status).execute();
    await announce(trx, id);
  });
}

type OwnMove = Omit<Move, 'id' | 'workspaceId'>;

async function move(parts: StepParts, box: BoxRow, to: OwnMove): Promise<boolean> {
  const { id, workspace_id: workspaceId } = box;
  const moved = await write(parts, (trx) => moveBox(trx, { id, workspaceId, ...to }));
  return moved !== undefined;
}

/** As takeStep: a box that somebody has moved meanwhile is looked at again at once. */
async function settle(parts: StepParts, box: BoxRow, to: OwnMove): Promise<boolean> {
  return !(await move(parts, box, to));
}

function failure(from: 'provisioning' | 'ready', reason: Move['reason'], message: string): OwnMove {
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

const SHOWN_ISSUES = 3;

function messageOf({ message, issues }: RuntimeError): string {
  const shown = issues.slice(0, SHOWN_ISSUES).map(({ loc, msg }) => `: ${loc.join('.')}: ${msg}`);
  return `${message}${shown.join('')}`;
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

// New boxes and changes of boxes, in the transaction of the request. The runtime is called by the reconciler alone, after the commit.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import type { OrganizationGrant } from '../api/access.ts';
import { isDuplicate, type Reader, type Transaction } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { announce, beginDeletion, moveBox, noteMove } from './box-moves.ts';
import { generateName } from './box-names.ts';
import { type PolicyParts, preparePolicy, type PreparedPolicy } from './box-policy.ts';
import type { BoxChange, NewBox } from './box-schema.ts';
import { type BoxSecrets, mintProxyToken } from './box-secrets.ts';
import type { MoveReason } from './box-states.ts';
import { type BoxRow, type BoxKey, findBox, gatewayUrl, lockBox, type PlacedRow, toNumber } from './boxes.ts';
import {
  asksCapacity,
  type DefaultSizes,
  defaultStorage,
  requireStorage,
  sizesOf,
  withDefaults,
} from './sizes/box-sizes.ts';
import { findSource } from './snapshots/snapshots.ts';
import { type BoxQuotas, lockUsage, requireQuota, type SnapshotQuota } from './sizes/quotas.ts';

export type BoxWriting = {
  readonly secrets: BoxSecrets;
  readonly policies: PolicyParts;
  readonly quotas: BoxQuotas & SnapshotQuota;
  readonly defaultSizes: DefaultSizes;
};

/** A document that was read before the transaction; `undefined` in `policy`: there is none. */
export type PreparedChange = {
  /** The box and the version that it replaces: the name may be that of another box by then. */
  readonly replaces: Pick<BoxRow, 'id' | 'policy_version'>;
  readonly policy: PreparedPolicy | undefined;
};

type Writer = {
  readonly db: Transaction;
  readonly workspaceId: string;
  readonly caller: OrganizationGrant['caller'];
};

/** Throws `conflict` for a name that exists, `quota_exceeded`, and InvalidInput for what the proxy_config says. */
export async function createBox(
  parts: BoxWriting,
  writer: Writer,
  given: NewBox,
  policy: PreparedPolicy | undefined,
): Promise<PlacedRow> {
  const { db, workspaceId } = writer;
  const snapshot = await findSource(db, workspaceId, given);
  const machine_id = snapshot?.machine_id ?? null;
  const defaults = {
    ...parts.defaultSizes,
    storageBytes:
      toNumber(snapshot?.fs_capacity_bytes ?? null) ??
      (await defaultStorage(db, parts.defaultSizes, machine_id)),
  };
  await requireStorage(db, { sizes: given, defaults, machineId: machine_id });
  await lockUsage(db, workspaceId);
  const id = randomUUID();
  const place = { id, workspace_id: workspaceId };
  const { secrets } = parts;
  const vars = given.env_vars ?? {};
  const values = {
    ...place,
    name: given.name ?? generateName(),
    has_generated_name: (given.name ?? undefined) === undefined,
    ...({ status: 'provisioning', desired: 'running', desired_reason: 'created' } as const),
    // The files of a snapshot are on one machine.
    ...{ snapshot_id: snapshot?.id ?? null, machine_id },
    ...sizesOf(withDefaults(given, defaults)),
    asks_capacity: asksCapacity(given),
    idle_ttl_seconds: given.idle_ttl_seconds ?? 0,
    delete_after_stop_seconds: given.delete_after_stop_seconds ?? 0,
    labels: JSON.stringify(given.labels ?? {}),
    ...(await policyColumns(secrets, db, { box: place, version: 1, policy })),
    sealed_env: Object.keys(vars).length === 0 ? null : await secrets.sealEnv(db, place, vars),
    sealed_token: await secrets.sealToken(db, place, 1, mintProxyToken()),
    created_by: authorOf(writer),
    updated_by: authorOf(writer),
  };
  const row = await named(() =>
    db.insertInto('boxes').values(values).returningAll().returning(gatewayUrl).executeTakeFirstOrThrow(),
  );
  await requireQuota(db, workspaceId, parts.quotas);
  await noteMove(db, { id, workspaceId, from: 'new', to: 'provisioning', reason: 'created' });
  return row;
}

/** The sizes count from the next start. Throws as createBox does, and `not_found`. */
export async function changeBox(
  parts: BoxWriting,
  writer: Writer & Pick<BoxKey, 'box'>,
  change: BoxChange,
  prepared: PreparedChange | undefined,
): Promise<PlacedRow> {
  const { db, workspaceId } = writer;
  await lockUsage(db, workspaceId);
  const box = await lockBox(db, writer);
  requireKept(box);
  await requireStorage(db, { sizes: change, defaults: parts.defaultSizes, machineId: box.machine_id });
  const { name, idle_ttl_seconds: idle, delete_after_stop_seconds: afterStop, labels } = change;
  const policy = prepared === undefined ? {} : await storePolicy(parts, db, box, prepared);
  const sizes = sizesOf(change);
  const changed = await named(() =>
    db
      .updateTable('boxes')
      .set({
        ...sizes,
        ...(asksCapacity(change) ? { asks_capacity: true } : {}),
        ...(name === undefined || name === null ? {} : { name }),
        ...(idle === undefined || idle === null ? {} : { idle_ttl_seconds: idle }),
        ...(afterStop === undefined || afterStop === null ? {} : { delete_after_stop_seconds: afterStop }),
        ...(labels === undefined || labels === null ? {} : { labels: JSON.stringify(labels) }),
        ...policy,
        ...{ updated_at: sql<Date>`now()`, updated_by: authorOf(writer) },
      })
      .where('id', '=', box.id)
      .returningAll()
      .returning(gatewayUrl)
      .executeTakeFirstOrThrow(),
  );
  // Rules can be changed, and secrets replaced, in a workspace that is above a quota that was lowered.
  if (Object.keys(sizes).length > 0) await requireQuota(db, workspaceId, parts.quotas);
  await announce(db, box.id);
  return changed;
}

/** Before the transaction of a change. Undefined: the rules stay. */
export async function prepareChange(
  { secrets, policies }: BoxWriting,
  call: BoxKey & { readonly db: Reader },
  { proxy_config: given, proxy_profile_id: profileId }: BoxChange,
): Promise<PreparedChange | undefined> {
  if (given === undefined && profileId === undefined) return undefined;
  const box = await findBox(call.db, call);
  const stored = (await secrets.openStored(call.db, box))?.own;
  const wanted = {
    document: given === undefined ? stored : (given ?? undefined),
    stored,
    profileId: profileId === undefined ? box.proxy_profile_id : profileId,
  };
  return { replaces: box, policy: await preparePolicy(policies, call, wanted) };
}

/** What the rules name is looked up again, so that a secret or a profile that was changed reaches the box. */
export async function prepareRefresh(
  { secrets, policies }: Pick<BoxWriting, 'secrets' | 'policies'>,
  call: BoxKey & { readonly db: Reader },
): Promise<PreparedChange | undefined> {
  const box = await findBox(call.db, call);
  const stored = await secrets.openStored(call.db, box);
  if (stored === undefined) return undefined;
  const wanted = { document: stored.own, profileId: box.proxy_profile_id };
  return { replaces: box, policy: await preparePolicy(policies, call, wanted) };
}

/** Throws `not_ready` for a box that is being deleted, and `quota_exceeded`. */
export async function startBox(
  parts: Pick<BoxWriting, 'quotas'>,
  writer: Writer & Pick<BoxKey, 'box'>,
  reason: 'start_requested' | 'data_plane_request' = 'start_requested',
): Promise<PlacedRow> {
  const { db, workspaceId } = writer;
  await lockUsage(db, workspaceId);
  const box = await lockBox(db, writer);
  requireKept(box);
  const desired = await setDesired(writer, box, 'running', reason);
  const { status, id } = box;
  const isDown = status === 'stopped' || status === 'failed';
  const move = { id, workspaceId, to: 'provisioning', reason } as const;
  const moved = isDown ? await moveBox(db, { ...move, from: status }) : undefined;
  // Also of one that is still being stopped: it did not count since then.
  if (isDown || box.desired === 'stopped') await requireQuota(db, workspaceId, parts.quotas);
  return moved ?? desired;
}

/** Throws `not_ready` for a box that is being deleted. */
export async function stopBox(writer: Writer & Pick<BoxKey, 'box'>): Promise<PlacedRow> {
  const box = await lockBox(writer.db, writer);
  requireKept(box);
  return setDesired(writer, box, 'stopped', 'stop_requested');
}

/** Also of a box that is being deleted. The row is locked. */
export async function deleteBox(writer: Writer, box: BoxRow): Promise<void> {
  await beginDeletion(writer.db, box, { reason: 'delete_requested', updatedBy: authorOf(writer) });
}

async function setDesired(
  { db, caller }: Writer,
  { id }: BoxRow,
  desired: BoxRow['desired'],
  reason: MoveReason,
): Promise<PlacedRow> {
  const row = await db
    .updateTable('boxes')
    .set({ desired, desired_reason: reason, updated_at: sql<Date>`now()`, updated_by: authorOf({ caller }) })
    .where('id', '=', id)
    .returningAll()
    .returning(gatewayUrl)
    .executeTakeFirstOrThrow();
  await announce(db, id);
  return row;
}

/** Throws `unavailable` where another request has changed the rules meanwhile: their opaque values may be others. */
export async function storePolicy(
  { secrets }: Pick<BoxWriting, 'secrets'>,
  db: Transaction,
  box: BoxRow,
  { replaces, policy }: PreparedChange,
) {
  if (replaces.id !== box.id || replaces.policy_version !== box.policy_version)
    throw new DomainError('unavailable', OVERTAKEN, OVERTAKEN_RETRY_MS);
  const version = box.policy_version + 1;
  return { policy_version: version, ...(await policyColumns(secrets, db, { box, version, policy })) };
}

type NewPolicy = {
  readonly box: Pick<BoxRow, 'id' | 'workspace_id'>;
  readonly version: number;
  readonly policy: PreparedPolicy | undefined;
};

async function policyColumns(secrets: BoxSecrets, db: Transaction, { box, version, policy }: NewPolicy) {
  return {
    proxy_config: policy === undefined || policy.shown === null ? null : JSON.stringify(policy.shown),
    proxy_profile_id: policy?.profile?.id ?? null,
    profile_version: policy?.profile?.version ?? null,
    ...{ profile_problem: null, profile_tried_version: null, profile_tried_at: null },
    sealed_policy: policy === undefined ? null : await secrets.sealPolicy(db, box, version, policy),
  };
}

const OVERTAKEN = 'Another request changed the rules of this sandbox at the same time: try again';
const OVERTAKEN_RETRY_MS = 1_000;

function requireKept({ status }: BoxRow): void {
  if (status === 'deleting') throw new DomainError('not_ready', 'The sandbox is being deleted');
}

function authorOf({ caller }: Pick<Writer, 'caller'>): string {
  return caller.userId ?? caller.keyId;
}

async function named<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isDuplicate(error, 'boxes_name')) throw error;
    throw new DomainError('conflict', 'A sandbox with this name already exists in this workspace');
  }
}

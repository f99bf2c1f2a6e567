// Boxes in the database: their rows, found by name or id in one workspace, listed, and shown to callers.
import { DomainError } from '../../base/domain-error.ts';
import { type Issue, z } from '../../base/schema.ts';
import type { RuntimeKind } from '../runtime/contract.ts';
import type { Database } from '../store/database.ts';
import { formatCursor, invalidCursor, parseCursor } from '../store/page-cursor.ts';
import { type Entity, type Fixed, type Generated, type Json, type Selectable, sql } from '../store/sql.ts';
import type { Tables } from '../store/tables.ts';
import { isBoxId } from './box-names.ts';
import type { BoxQuery, ShownBox } from './box-schema.ts';
import type { BoxStatus, MoveReason, Place } from './box-states.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly boxes: Entity & {
      readonly workspace_id: string;
      name: string;
      /** The caller learns the name from the response alone. */
      readonly has_generated_name: boolean;
      status: BoxStatus;
      status_message: string | null;
      /** What a caller wants; a box to be deleted has the status `deleting`. */
      desired: 'running' | 'stopped';
      desired_reason: MoveReason;
      /** The machine that runs it; null until one takes it. */
      machine_id: string | null;
      /** What ran it first, and alone may run it; null until then. */
      runtime: RuntimeKind | null;
      /** Of its workspace; null: the base. */
      readonly snapshot_id: string | null;
      cpu_millicores: number | null;
      mem_bytes: string | null;
      fs_capacity_bytes: string | null;
      /** A caller asked for the capacity; else it is a default. */
      asks_capacity: Generated<boolean>;
      idle_ttl_seconds: number;
      delete_after_stop_seconds: number;
      labels: Json<Readonly<Record<string, string>>>;
      /** As it is shown: without an opaque value. */
      proxy_config: Json<Readonly<Record<string, unknown>>> | null;
      proxy_profile_id: string | null;
      /** Of the profile, in the policy. */
      profile_version: number | null;
      /** The profile that the proxy has acknowledged, and its version. */
      applied_profile_id: string | null;
      applied_profile_version: number | null;
      /** Why the latest version of the profile is not in the policy, and which version that is about. */
      profile_problem: Json<readonly Issue[]> | null;
      profile_tried_version: number | null;
      profile_tried_at: Date | null;
      policy_version: Generated<number>;
      applied_version: Generated<number>;
      /** The latest policy that the proxy has rejected. */
      rejected_version: Generated<number>;
      sealed_policy: Buffer | null;
      sealed_env: Buffer | null;
      sealed_token: Buffer;
      token_version: Generated<number>;
      applied_token_version: Generated<number>;
      proxy_url: string | null;
      needs_proxy_token: Generated<boolean>;
      ca_pem: string | null;
      readonly created_by: string | null;
      updated_at: Generated<Date>;
      updated_by: string | null;
      stopped_at: Date | null;
      /** Idle time counts from here. */
      active_at: Generated<Date>;
    };
    readonly box_transitions: {
      readonly id: Fixed<string>;
      readonly workspace_id: string;
      readonly box_id: string;
      readonly from_status: Place | null;
      readonly to_status: Place | null;
      readonly reason: MoveReason;
      readonly at: Generated<Date>;
    };
    readonly box_machines: {
      readonly id: string;
      /** The process that reconciles its boxes. */
      holder: string | null;
      held_until: Date | null;
      runtime: RuntimeKind | null;
      /** Whether it limits what boxes store. */
      holds_storage: boolean | null;
      /** Without a slash at its end; null where no process of the machine serves. */
      gateway_url: string | null;
      seen_at: Generated<Date>;
      /** From then on nobody waits for it, unless it is seen before. */
      lost_at: Date | null;
    };
  }
}

export type BoxRow = Selectable<Tables['boxes']>;
/** With how clients reach its machine; null until one takes it. */
export type PlacedRow = BoxRow & { readonly gateway_url: string | null };

/** Of the machine of the box that a statement reads or writes; null also for a box that somebody else runs. */
export const gatewayUrl = sql<string | null>`
  (select box_machines.gateway_url from box_machines where box_machines.id = boxes.machine_id
    and coalesce(boxes.runtime, box_machines.runtime, '') <> 'attached')`.as('gateway_url');

/** What a box is shown by. Without its sealed rules and variables: they may be a megabyte, and a list has many boxes. */
const SHOWN = [
  ...(['id', 'name', 'status', 'status_message', 'labels', 'proxy_config', 'proxy_profile_id'] as const),
  ...(['runtime', 'proxy_url', 'ca_pem', 'cpu_millicores', 'mem_bytes', 'fs_capacity_bytes'] as const),
  ...(['profile_problem', 'snapshot_id'] as const),
  ...(['idle_ttl_seconds', 'delete_after_stop_seconds', 'policy_version', 'applied_version'] as const),
  ...(['created_at', 'created_by', 'updated_at', 'updated_by', 'stopped_at'] as const),
] as const;
export type ShownRow = Pick<PlacedRow, (typeof SHOWN)[number] | 'gateway_url'>;

/** With what a request waits for. */
const AWAITED = [
  ...SHOWN,
  ...(['workspace_id', 'has_generated_name', 'desired'] as const),
  ...(['needs_proxy_token', 'sealed_token', 'token_version', 'applied_token_version'] as const),
  ...(['rejected_version'] as const),
] as const;
export type AwaitedRow = Pick<PlacedRow, (typeof AWAITED)[number] | 'gateway_url'>;

/** By the id that the transaction before has returned; undefined where the box is gone. */
export function readAwaited(db: Pick<Database, 'selectFrom'>, id: string): Promise<AwaitedRow | undefined> {
  return db.selectFrom('boxes').select(AWAITED).select(gatewayUrl).where('id', '=', id).executeTakeFirst();
}

/** A name or an id, as paths have it. */
export type BoxKey = { readonly workspaceId: string; readonly box: string };

/** Throws `not_found`, also for a box of another workspace. */
export async function findBox(
  db: Pick<Database, 'selectFrom'>,
  { workspaceId, box }: BoxKey,
): Promise<PlacedRow> {
  return db
    .selectFrom('boxes')
    .selectAll()
    .select(gatewayUrl)
    .where('workspace_id', '=', workspaceId)
    .where(isBoxId(box) ? 'id' : 'name', '=', box)
    .executeTakeFirstOrThrow(noBox);
}

/** The same, locked until the commit. */
export async function lockBox(trx: Database, { workspaceId, box }: BoxKey): Promise<PlacedRow> {
  return trx
    .selectFrom('boxes')
    .selectAll()
    .select(gatewayUrl)
    .where('workspace_id', '=', workspaceId)
    .where(isBoxId(box) ? 'id' : 'name', '=', box)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(noBox);
}

export function noBox(): DomainError {
  return new DomainError('not_found', 'There is no such sandbox in this workspace');
}

type Listed = {
  readonly boxes: readonly ShownRow[];
  readonly offset: number;
  readonly cursor: string | null;
};

const DEFAULT_LIMIT = 100;
const place = z.strictObject({ offset: z.int().min(0).max(1e9) });

/** Throws InvalidInput for a cursor that was not returned for the same filters. */
export async function listBoxes(db: Database, workspaceId: string, query: BoxQuery): Promise<Listed> {
  const { name_contains, status, sort_by, sort_direction, cursor } = query;
  const filters = [workspaceId, name_contains ?? null, status ?? null, sort_by, sort_direction];
  const limit = query.limit ?? query.page_size ?? DEFAULT_LIMIT;
  const from = cursor === undefined ? query : parseCursor(cursor, place, filters);
  if (from === undefined) throw invalidCursor();
  let select = db
    .selectFrom('boxes')
    .select(SHOWN)
    .select(gatewayUrl)
    .where('workspace_id', '=', workspaceId);
  if (status !== undefined) select = select.where('status', '=', status);
  if (name_contains !== undefined)
    select = select.where(({ eb, fn, val }) =>
      eb(fn<number>('strpos', ['name', val(name_contains)]), '>', 0),
    );
  const rows = await select
    .orderBy(sort_by, sort_direction)
    .orderBy('id')
    .limit(limit + 1)
    .offset(from.offset)
    .execute();
  const boxes = rows.slice(0, limit);
  const offset = from.offset + boxes.length;
  return { boxes, offset, cursor: rows.length > limit ? formatCursor({ offset }, filters) : null };
}

export function toShownBox(row: ShownRow): ShownBox {
  const { id, name, status, runtime, labels, proxy_config, proxy_profile_id } = row;
  const { snapshot_id, proxy_url, ca_pem } = row;
  return {
    status_message: toStatusMessage(row),
    ...{ id, name, status, runtime, labels, proxy_config, proxy_profile_id },
    ...{ snapshot_id, proxy_url, ca_pem, dataplane_url: dataPlaneUrl(row) },
    ...{ size_class: null, mount_config: null },
    vcpus: row.cpu_millicores === null ? null : row.cpu_millicores / 1000,
    cpu_millicores: row.cpu_millicores,
    mem_bytes: toNumber(row.mem_bytes),
    fs_capacity_bytes: toNumber(row.fs_capacity_bytes),
    idle_ttl_seconds: row.idle_ttl_seconds,
    delete_after_stop_seconds: row.delete_after_stop_seconds,
    proxy_config_version: row.policy_version,
    proxy_config_applied_version: row.applied_version,
    created_at: row.created_at.toISOString(),
    created_by: row.created_by,
    updated_at: row.updated_at.toISOString(),
    updated_by: row.updated_by,
    stopped_at: row.stopped_at?.toISOString() ?? null,
  };
}

/** Why a box is as it is; where nothing is wrong with it, why it has not the latest rules of its proxy profile. */
export function toStatusMessage({
  status_message: message,
  profile_problem: problem,
}: Pick<BoxRow, 'status_message' | 'profile_problem'>): string | null {
  if (message !== null || problem === null) return message;
  const shown = problem.slice(0, 3).map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
  return `The proxy profile has changed, and its rules before stay in effect: ${shown.join('; ')}`;
}

/** It stays over stop and start. Null until a machine has taken the box, and where somebody else runs it. */
function dataPlaneUrl({ id, gateway_url }: ShownRow): string | null {
  return gateway_url === null ? null : `${gateway_url}/boxes/${id}`;
}

/** PostgreSQL sends 64-bit integers as text; those of a box fit a number. */
export function toNumber(text: string | null): number | null {
  return text === null ? null : Number(text);
}

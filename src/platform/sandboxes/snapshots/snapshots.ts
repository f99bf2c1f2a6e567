// Snapshots in the database: their rows, found in one workspace, and shown to callers. `base` has no row: every workspace has it.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database, Reader } from '../../store/database.ts';
import type { Entity, Generated, Selectable } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { isBoxId } from '../box-names.ts';
import type { NewBox } from '../box-schema.ts';
import { toNumber } from '../boxes.ts';
import type { ShownSnapshot, SnapshotQuery } from './snapshot-schema.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly snapshots: Entity & {
      readonly workspace_id: string;
      readonly name: string;
      status: 'building' | 'ready' | 'failed';
      status_message: string | null;
      /** That has its files; null until one makes them. */
      machine_id: string | null;
      /** Of a machine, that it is made of; null: it was sent as an archive. */
      readonly directory: string | null;
      readonly fs_capacity_bytes: string | null;
      size_bytes: string | null;
      entries: number | null;
      readonly created_by: string | null;
      updated_at: Generated<Date>;
    };
  }
}

export type SnapshotRow = Selectable<Tables['snapshots']>;

/** The name and the id of the programs of the machine itself, in every workspace. */
export const BASE_NAME = 'base';
export const BASE_ID = '00000000-0000-4000-8000-000062617365';

/** Throws `not_found`, also for a snapshot of another workspace, and for `base`. */
export async function findSnapshot(db: Reader, workspaceId: string, id: string): Promise<SnapshotRow> {
  return db
    .selectFrom('snapshots')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(noSnapshot);
}

export function noSnapshot(): DomainError {
  return new DomainError('not_found', 'There is no such snapshot in this workspace');
}

const NO_SNAPSHOT = 'There is no such snapshot in this workspace: leave it out to use the base';
const NOT_READY = 'The snapshot is not ready: look at its status';

/** What a new box is made of, locked against its deletion; undefined: `base`. Throws `unusable`: public clients expect a 400. */
export async function findSource(
  trx: Database,
  workspaceId: string,
  { snapshot_id, snapshot_name, snapshot }: Pick<NewBox, 'snapshot_id' | 'snapshot_name' | 'snapshot'>,
): Promise<SnapshotRow | undefined> {
  const key = [snapshot_id, snapshot_name, snapshot].find(
    (one) => one !== undefined && one !== null && one !== '',
  );
  if (key === undefined || key === null || key === BASE_ID || key === BASE_NAME) return undefined;
  const row = await trx
    .selectFrom('snapshots')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where(isBoxId(key) ? 'id' : 'name', '=', key)
    .forKeyShare()
    .executeTakeFirst();
  if (row === undefined) throw new DomainError('unusable', NO_SNAPSHOT);
  if (row.status !== 'ready') throw new DomainError('unusable', NOT_READY);
  return row;
}

/** `base` comes first. */
export async function listSnapshots(
  db: Database,
  workspaceId: string,
  { limit, offset, name_contains, status }: SnapshotQuery,
): Promise<readonly ShownSnapshot[]> {
  const text = name_contains?.toLowerCase() ?? '';
  const hasBase = BASE_NAME.includes(text) && (status ?? 'ready') === 'ready';
  const base = hasBase && offset === 0 ? [shownBase] : [];
  let select = db.selectFrom('snapshots').selectAll().where('workspace_id', '=', workspaceId);
  if (status !== undefined) select = select.where('status', '=', status);
  if (text !== '')
    select = select.where(({ eb, fn, val }) =>
      eb(fn<number>('strpos', [fn<string>('lower', ['name']), val(text)]), '>', 0),
    );
  const rows = await select
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit - base.length)
    .offset(Math.max(0, offset - (hasBase ? 1 : 0)))
    .execute();
  return [...base, ...rows.map(toShownSnapshot)];
}

export function toShownSnapshot(row: SnapshotRow): ShownSnapshot {
  const { id, name, status, status_message, entries, created_by, directory } = row;
  return {
    ...{ id, name, status, status_message, entries, created_by },
    ...{ docker_image: null, registry_id: null, source: directory === null ? 'archive' : 'directory' },
    fs_capacity_bytes: toNumber(row.fs_capacity_bytes),
    size_bytes: toNumber(row.size_bytes),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

export const shownBase: ShownSnapshot = {
  ...{ id: BASE_ID, name: BASE_NAME, status: 'ready', source: 'base' },
  status_message: 'The programs of the machine that runs the sandbox',
  ...{ docker_image: null, registry_id: null, fs_capacity_bytes: null, size_bytes: 0, entries: null },
  ...{ created_by: null, created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' },
};

// What the boxes of one workspace may use together. The words of the messages are those by which clients tell the quotas apart.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

export type BoxQuotas = {
  readonly boxes: number;
  readonly cpuMillicores: number;
  readonly memoryBytes: number;
  readonly storageBytes: number;
};

export type SnapshotQuota = { readonly snapshotBytes: number };

export type BoxUsage = BoxQuotas;

/** Locks the workspace until the commit, so that two concurrent requests are counted one after the other. */
export async function lockUsage(trx: Database, workspaceId: string): Promise<void> {
  await trx.selectFrom('workspaces').select('id').where('id', '=', workspaceId).forNoKeyUpdate().execute();
}

/** Processor and memory count while a box runs or is to run, storage as long as there is a box. */
export async function readUsage(db: Pick<Database, 'selectFrom'>, workspaceId: string): Promise<BoxUsage> {
  const running = sql`filter (where desired = 'running' and status in ('provisioning', 'ready'))`;
  const row = await db
    .selectFrom('boxes')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.countAll<string>().as('boxes'))
    .select([
      sql<string>`coalesce(sum(cpu_millicores) ${running}, 0)`.as('cpu'),
      sql<string>`coalesce(sum(mem_bytes) ${running}, 0)`.as('memory'),
      sql<string>`coalesce(sum(fs_capacity_bytes), 0)`.as('storage'),
    ])
    .executeTakeFirstOrThrow();
  return {
    boxes: Number(row.boxes),
    cpuMillicores: Number(row.cpu),
    memoryBytes: Number(row.memory),
    storageBytes: Number(row.storage),
  };
}

/** After the write, in its transaction. Throws `quota_exceeded`, which rolls it back. */
export async function requireQuota(trx: Database, workspaceId: string, quotas: BoxQuotas): Promise<void> {
  const used = await readUsage(trx, workspaceId);
  for (const [key, message] of Object.entries(MESSAGES) as [keyof BoxQuotas, string][])
    if (used[key] > quotas[key])
      throw new DomainError('quota_exceeded', `${message} of ${quotas[key]}: delete some, or ask for less`);
}

const MESSAGES: Readonly<Record<keyof BoxQuotas, string>> = {
  boxes: 'The workspace would exceed its sandbox count limit',
  cpuMillicores: 'The workspace would exceed its cpu quota in thousandths',
  memoryBytes: 'The workspace would exceed its memory quota in bytes',
  storageBytes: 'The workspace would exceed its storage quota in bytes',
};

/** Those that are being made count once their size is known. */
export async function readSnapshotBytes(
  db: Pick<Database, 'selectFrom'>,
  workspaceId: string,
): Promise<number> {
  const row = await db
    .selectFrom('snapshots')
    .where('workspace_id', '=', workspaceId)
    .select(sql<string>`coalesce(sum(size_bytes), 0)`.as('bytes'))
    .executeTakeFirstOrThrow();
  return Number(row.bytes);
}

async function readSnapshotEntries(db: Pick<Database, 'selectFrom'>, workspaceId: string): Promise<number> {
  const row = await db
    .selectFrom('snapshots')
    .where('workspace_id', '=', workspaceId)
    .select(sql<string>`coalesce(sum(entries), 0)`.as('entries'))
    .executeTakeFirstOrThrow();
  return Number(row.entries);
}

/** On disk, a directory and a file of one byte take a block each, and an inode: empty ones would count for nothing. */
const BLOCK_BYTES = 4_096;
/** As many as one snapshot may have. */
const MIN_SNAPSHOT_ENTRIES = 1_000_000;

/** How many bytes are left. Throws `quota_exceeded`. */
export async function requireSnapshotQuota(
  db: Pick<Database, 'selectFrom'>,
  workspaceId: string,
  { snapshotBytes: limit }: SnapshotQuota,
): Promise<number> {
  const maxEntries = Math.max(MIN_SNAPSHOT_ENTRIES, Math.floor(limit / BLOCK_BYTES));
  if ((await readSnapshotEntries(db, workspaceId)) > maxEntries)
    throw new DomainError('quota_exceeded', `${ENTRIES} of ${maxEntries}: delete snapshots`);
  const left = limit - (await readSnapshotBytes(db, workspaceId));
  if (left >= 0) return left;
  throw new DomainError('quota_exceeded', `${SNAPSHOTS} of ${limit}: delete snapshots`);
}

const ENTRIES = 'The workspace would exceed its storage quota of snapshots in files and directories';
const SNAPSHOTS = 'The workspace would exceed its storage quota of snapshots in bytes';

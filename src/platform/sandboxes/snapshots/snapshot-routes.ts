// `/snapshots`: what boxes can be made of. Paths and shapes are those of public clients; an archive has a path of its own, because
// the public one takes an image. Files are made by the machine: of a directory after the commit, of an archive as it arrives.
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace, type OrganizationGrant } from '../../api/access.ts';
import { byteUpload } from '../../api/body/upload.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../../api/route.ts';
import { RuntimeError } from '../../runtime/contract.ts';
import { isDuplicate, type Reader, type Transaction } from '../../store/database.ts';
import { notify } from '../../store/postgres/notifications.ts';
import { shared } from '../box-routes.ts';
import { lockUsage, requireSnapshotQuota, type SnapshotQuota } from '../sizes/quotas.ts';
import type { MachineLink } from './machine-link.ts';
import { archiveQuery, newSnapshot, shownSnapshot, snapshotList, snapshotQuery } from './snapshot-schema.ts';
import * as snapshots from './snapshots.ts';

export type SnapshotParts = {
  /** False: the boxes of this installation have no files here. */
  readonly hasFiles: boolean;
  readonly directories: readonly string[];
  readonly quota: SnapshotQuota;
  readonly machine: Pick<MachineLink, 'open'>;
  wake(): void;
};

const params = z.strictObject({ snapshot_id: z.guid() });
const NONE =
  'Sandboxes of this installation are run by somebody else, who also chooses their files: there are no snapshots';
const IMAGE =
  'Images cannot be read: send a directory of the machine as `directory`, or the root file system as a tar to /v1/sandbox-snapshots ' +
  '(docker export CONTAINER | gzip)';
const NOT_ALLOWED =
  '`directory` must be an absolute path below one of sandboxes.snapshot_directories, which the operator sets; a tar is sent to ' +
  '/v1/sandbox-snapshots';
const RESERVED = 'There is a snapshot with this name in every workspace';

export function createSnapshotRoutes(parts: SnapshotParts): readonly Route[] {
  return [listRoute(parts), createRoute(parts), readRoute(parts), deleteRoute(parts)];
}

function requireFiles({ hasFiles }: SnapshotParts): void {
  if (!hasFiles) throw new DomainError('not_supported', NONE);
}

const listRoute = (parts: SnapshotParts): Route =>
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/snapshots',
    summary: 'List the snapshots of the workspace, and the base that every workspace has',
    access: inWorkspace('sandboxes:read'),
    tracking: UNTRACKED_READ,
    query: snapshotQuery,
    responses: { 200: snapshotList },
    async handle({ db, workspaceId, query }) {
      requireFiles(parts);
      const found = await snapshots.listSnapshots(db, workspaceId, query);
      return { body: { snapshots: [...found], offset: query.offset + found.length } };
    },
  });

const createRoute = (parts: SnapshotParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/snapshots',
    summary: 'Make a snapshot of a directory of the machine; its status says when it is ready',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'create_sandbox_snapshot' },
    body: newSnapshot,
    responses: { 201: shownSnapshot },
    failures: [400, 409],
    async handle(call) {
      requireFiles(parts);
      const { name, directory, docker_image: image, registry_id: registry } = call.body;
      if ((image ?? '') !== '' || (registry ?? '') !== '') throw new DomainError('unusable', IMAGE);
      requireDirectory(directory, parts.directories);
      const { db, workspaceId } = call;
      await lockUsage(db, workspaceId);
      await requireSnapshotQuota(db, workspaceId, parts.quota);
      const row = await insert(call, { ...call.body, name, directory, status: 'building' });
      await notify(db, 'sandboxes', row.id);
      return outcome(row);
    },
    after: () => parts.wake(),
  });

/** Of its text alone: what it leads to is checked by what opens it. */
function requireDirectory(
  directory: string | null | undefined,
  allowed: readonly string[],
): asserts directory is string {
  const isBelow = (one: string): boolean =>
    directory === one || directory?.startsWith(one === '/' ? one : `${one}/`) === true;
  if (typeof directory === 'string' && resolve(directory) === directory && allowed.some(isBelow)) return;
  throw new DomainError('unusable', NOT_ALLOWED);
}

const GIB = 1024 ** 3;
const UPLOAD = byteUpload(
  ['application/x-tar', 'application/gzip', 'application/zstd', 'application/octet-stream'],
  { codings: [], maxSentBytes: 16 * GIB, maxBytes: 16 * GIB, totalMs: 3_600_000 },
);

/** With its whole path: no public client knows it. */
export const archiveRoute = (parts: SnapshotParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/v1/sandbox-snapshots',
    summary:
      'Make a snapshot of a tar, plain or compressed by gzip or zstd; the response comes when it is ready',
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'create_sandbox_snapshot' },
    query: archiveQuery,
    upload: UPLOAD,
    responses: { 201: shownSnapshot },
    failures: [400, 409, 413],
    limits: { running: { total: 8, perCaller: 2 } },
    async prepare({ db, workspaceId, query, upload, signal }) {
      requireFiles(parts);
      // Before the bytes are read: what would be in vain after an hour.
      await requireName(db, workspaceId, query.name);
      const maxBytes = await requireSnapshotQuota(db, workspaceId, parts.quota);
      const { runtime, machineId } = await parts.machine.open().catch(rethrow);
      const id = randomUUID();
      const made = await runtime.snapshots.importArchive(id, upload, { maxBytes, signal }).catch(rethrow);
      return { id, machine_id: machineId, size_bytes: String(made.bytes), entries: made.entries };
    },
    // Where this fails, no row names the files, and what makes snapshots removes them.
    async handle(call, made) {
      const { db, workspaceId } = call;
      await lockUsage(db, workspaceId);
      const row = await insert(call, { ...call.query, ...made, status: 'ready' });
      await requireSnapshotQuota(db, workspaceId, parts.quota);
      return outcome(row);
    },
    after: () => parts.wake(),
  });

/** The errors of the runtime; the caller's own stay. */
function rethrow(error: unknown): never {
  if (!(error instanceof RuntimeError)) throw error;
  if (error.kind === 'invalid_snapshot')
    throw new InvalidInput([{ loc: ['body'], msg: error.message, type: 'value_error' }]);
  const isHeld = error.kind === 'not_supported';
  throw new DomainError(isHeld ? 'not_supported' : 'unavailable', error.message, isHeld ? undefined : 5_000);
}

const readRoute = (parts: SnapshotParts): Route =>
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/snapshots/{snapshot_id}',
    summary: 'Read a snapshot',
    params,
    access: inWorkspace('sandboxes:read'),
    tracking: UNTRACKED_READ,
    responses: { 200: shownSnapshot },
    failures: [404],
    async handle({ db, workspaceId, params: { snapshot_id: id } }) {
      requireFiles(parts);
      if (id === snapshots.BASE_ID) return { body: snapshots.shownBase };
      return { body: snapshots.toShownSnapshot(await snapshots.findSnapshot(db, workspaceId, id)) };
    },
  });

const deleteRoute = (parts: SnapshotParts): Route =>
  defineRoute({
    ...shared,
    method: 'DELETE',
    path: '/snapshots/{snapshot_id}',
    summary: 'Delete a snapshot that no sandbox uses',
    params,
    access: inWorkspace('sandboxes:manage'),
    tracking: { operation: 'delete_sandbox_snapshot' },
    responses: { 204: null },
    failures: [404, 409],
    async handle({ db, workspaceId, params: { snapshot_id: id } }) {
      requireFiles(parts);
      if (id === snapshots.BASE_ID) throw new DomainError('forbidden', 'Nobody can delete the base');
      const lock = db.selectFrom('snapshots').select('name').where('workspace_id', '=', workspaceId);
      const { name } = await lock
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirstOrThrow(snapshots.noSnapshot);
      const used = db.selectFrom('boxes').select('id').where('workspace_id', '=', workspaceId);
      if ((await used.where('snapshot_id', '=', id).limit(1).executeTakeFirst()) !== undefined)
        throw new DomainError('conflict', 'Sandboxes use this snapshot: delete them first');
      await db.deleteFrom('snapshots').where('id', '=', id).execute();
      await notify(db, 'sandboxes', id);
      return { resources: [id], resourceNames: [name] };
    },
    after: () => parts.wake(),
  });

type New = Pick<snapshots.SnapshotRow, 'name' | 'status'> & {
  readonly id?: string;
  readonly directory?: string;
  readonly fs_capacity_bytes?: number | null | undefined;
  readonly machine_id?: string;
  readonly size_bytes?: string;
  readonly entries?: number;
};

async function insert(
  { db, workspaceId, caller }: OrganizationGrant & { readonly db: Transaction; readonly workspaceId: string },
  { name, status, fs_capacity_bytes: capacity, ...more }: New,
): Promise<snapshots.SnapshotRow> {
  if (name === snapshots.BASE_NAME) throw new DomainError('conflict', RESERVED);
  const { id, directory, machine_id, size_bytes, entries } = more;
  const values = {
    ...(id === undefined ? {} : { id }),
    ...{ workspace_id: workspaceId, name, status, directory, machine_id, size_bytes, entries },
    fs_capacity_bytes: typeof capacity === 'number' ? String(capacity) : null,
    created_by: caller.userId ?? caller.keyId,
  };
  try {
    return await db.insertInto('snapshots').values(values).returningAll().executeTakeFirstOrThrow();
  } catch (error) {
    throw isDuplicate(error, 'snapshots_name') ? taken() : error;
  }
}

async function requireName(db: Reader, workspaceId: string, name: string): Promise<void> {
  if (name === snapshots.BASE_NAME) throw new DomainError('conflict', RESERVED);
  const found = db.selectFrom('snapshots').select('id').where('workspace_id', '=', workspaceId);
  if ((await found.where('name', '=', name).executeTakeFirst()) !== undefined) throw taken();
}

function taken(): DomainError {
  return new DomainError('conflict', 'A snapshot with this name already exists in this workspace');
}

function outcome(row: snapshots.SnapshotRow) {
  return { body: snapshots.toShownSnapshot(row), resources: [row.id], resourceNames: [row.name] };
}

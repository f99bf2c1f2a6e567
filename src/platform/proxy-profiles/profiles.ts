// Proxy profiles in the database. Writers of one workspace take turns, so that it has at most one default and no more than it may.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import { noWorkspace } from '../identity/authorization.ts';
import type { ProxyDocument } from '../proxy-documents/parsed-document.ts';
import { sealDocument } from '../proxy-documents/sealed-document.ts';
import { toShownDocument } from '../proxy-documents/shown-document.ts';
import { brokenReferenceOf, isDuplicate, type Reader, type Transaction } from '../store/database.ts';
import { formatCursor, invalidCursor, parseCursor } from '../store/page-cursor.ts';
import { sql } from '../store/sql.ts';
import type { Vault } from '../vault/vault.ts';
import { notifyOfProfile, placeOfProfile } from './contract.ts';

const MAX_PROFILES = 100;

const SUMMARY = ['id', 'name', 'is_default', 'version', 'created_at', 'updated_at'] as const;
const COLUMNS = [...SUMMARY, 'shown'] as const;

/** The workspace and the transaction of a write. */
export type ProfileWrite = {
  readonly vault: Vault;
  readonly trx: Transaction;
  readonly workspaceId: string;
};

export type NewProfile = {
  readonly name: string;
  readonly is_default: boolean;
  readonly document: ProxyDocument;
};

export type ProfileChanges = {
  readonly name?: string | undefined;
  readonly is_default?: boolean | undefined;
  /** `basedOn`: the version whose opaque values it may have kept. */
  readonly replacement?: { readonly document: ProxyDocument; readonly basedOn: number } | undefined;
};

/** Throws `conflict` when the name is taken, or the workspace has as many as it may. */
export async function createProfile(write: ProfileWrite, { name, is_default, document }: NewProfile) {
  const { trx, workspaceId } = write;
  await lockWorkspace(write);
  await requireCapacity(write);
  if (is_default) await clearDefault(write);
  const id = randomUUID();
  const sealed = await sealDocument(write, placeOfProfile(workspaceId, id, 1), document);
  const shown = JSON.stringify(toShownDocument(document));
  try {
    return await trx
      .insertInto('proxy_profiles')
      .values({ id, workspace_id: workspaceId, name, is_default, version: 1, shown, sealed })
      .returning(COLUMNS)
      .executeTakeFirstOrThrow();
  } catch (error) {
    throw nameTaken(error);
  }
}

/** Oldest first. Throws InvalidInput for a cursor that was not returned for this workspace. */
export async function listProfiles(
  db: Reader,
  workspaceId: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
) {
  const filters = ['proxy profiles', workspaceId];
  const after = cursor === undefined ? undefined : parseCursor(cursor, position, filters);
  if (cursor !== undefined && after === undefined) throw invalidCursor();
  let query = db
    .selectFrom('proxy_profiles')
    .select(SUMMARY)
    .select(CREATED_MS.as('ms'))
    .where('workspace_id', '=', workspaceId);
  if (after !== undefined)
    query = query.where(sql<boolean>`(${CREATED_MS}, id) > (${after.ms}::bigint, ${after.id}::uuid)`);
  const rows = await query
    .orderBy(CREATED_MS)
    .orderBy('id')
    .limit(limit + 1)
    .execute();
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return {
    rows: page.map((row) => {
      const { ms: _, ...summary } = row;
      return summary;
    }),
    cursor: last === undefined ? null : formatCursor({ ms: Number(last.ms), id: last.id }, filters),
  };
}

const CREATED_MS = sql<string>`floor(extract(epoch from created_at) * 1000)::bigint`;

const position = z.strictObject({ ms: z.int().min(0), id: z.guid() });

/** Throws `not_found`, also for a profile of another workspace. */
export async function findProfile(db: Reader, workspaceId: string, id: string) {
  return db
    .selectFrom('proxy_profiles')
    .select(COLUMNS)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow(noProfile);
}

/** Throws `conflict` when the name is taken, or another request has replaced the document that this one is based on. */
export async function changeProfile(
  write: ProfileWrite,
  id: string,
  { name, is_default, replacement }: ProfileChanges,
) {
  const { trx, workspaceId } = write;
  await lockWorkspace(write);
  const { version: current } = await findProfile(trx, workspaceId, id);
  if (replacement !== undefined && replacement.basedOn !== current)
    throw new DomainError('conflict', CHANGED);
  if (is_default === true) await clearDefault(write, id);
  const version = replacement === undefined ? current : current + 1;
  const replaced = replacement && {
    version,
    shown: JSON.stringify(toShownDocument(replacement.document)),
    sealed: await sealDocument(write, placeOfProfile(workspaceId, id, version), replacement.document),
  };
  try {
    const changed = await trx
      .updateTable('proxy_profiles')
      .set({
        updated_at: sql<Date>`now()`,
        ...(name === undefined ? {} : { name }),
        ...(is_default === undefined ? {} : { is_default }),
        ...replaced,
      })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning(COLUMNS)
      .executeTakeFirstOrThrow(noProfile);
    if (replaced !== undefined) await notifyOfProfile(trx, { workspaceId, profileId: id, version });
    return changed;
  } catch (error) {
    throw nameTaken(error);
  }
}

/** Throws `conflict` while something uses it. */
export async function deleteProfile({ trx, workspaceId }: ProfileWrite, id: string): Promise<void> {
  try {
    await trx
      .deleteFrom('proxy_profiles')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirstOrThrow(noProfile);
  } catch (error) {
    throw brokenReferenceOf(error) === undefined ? error : new DomainError('conflict', USED);
  }
}

const CHANGED = 'The document was replaced at the same time: read the profile and send the change again';
const USED =
  'The proxy profile is used: delete the sandboxes and deployments that use it first, or give them another one';

const noProfile = (): DomainError => new DomainError('not_found', 'Proxy profile not found');

function nameTaken(error: unknown): unknown {
  return isDuplicate(error, 'proxy_profiles_name')
    ? new DomainError('conflict', 'A proxy profile with this name already exists')
    : error;
}

/** Until the commit. */
async function lockWorkspace({ trx, workspaceId }: ProfileWrite): Promise<void> {
  await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', workspaceId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(noWorkspace);
}

async function requireCapacity({ trx, workspaceId }: ProfileWrite): Promise<void> {
  const { count } = await trx
    .selectFrom('proxy_profiles')
    .where('workspace_id', '=', workspaceId)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_PROFILES)
    throw new DomainError(
      'conflict',
      `A workspace can have at most ${MAX_PROFILES} proxy profiles: delete one first`,
    );
}

async function clearDefault({ trx, workspaceId }: ProfileWrite, but?: string): Promise<void> {
  await trx
    .updateTable('proxy_profiles')
    .set({ is_default: false, updated_at: sql<Date>`now()` })
    .where('workspace_id', '=', workspaceId)
    .where('is_default', '=', true)
    .$if(but !== undefined, (query) => query.where('id', '<>', but ?? ''))
    .execute();
}

// What other modules need of proxy profiles: their documents, the default of a workspace, and a notification of each change. A table whose
// rows use profiles has `proxy_profile_id uuid` and `foreign key (workspace_id, proxy_profile_id) references proxy_profiles (workspace_id, id)`:
// a profile that is used is then not deleted, and a row cannot use one that does not exist, or one of another workspace.
import { z } from '../../base/schema.ts';
import { type OpenedDocument, openDocument } from '../proxy-documents/sealed-document.ts';
import type { Reader, Transaction } from '../store/database.ts';
import { type Channel, notify } from '../store/postgres/notifications.ts';
import type { Entity, Generated, Json } from '../store/sql.ts';
import type { SealedPlace, Vault } from '../vault/vault.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly proxy_profiles: Entity & {
      readonly workspace_id: string;
      name: string;
      is_default: Generated<boolean>;
      /** Of the document: it rises with each change of it. */
      version: Generated<number>;
      /** Without its opaque values. */
      shown: Json<Readonly<Record<string, unknown>>>;
      sealed: Buffer;
      updated_at: Generated<Date>;
    };
  }
}

/** With the opaque values of its document. */
export type ProxyProfile = {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  /** As `requireDocument` takes it. */
  readonly opened: OpenedDocument;
};

type Source = { readonly vault: Vault; readonly db: Reader };

/** Undefined also for a profile of another workspace. */
export function readProfile(
  source: Source,
  workspaceId: string,
  id: string,
): Promise<ProxyProfile | undefined> {
  return open(source, workspaceId, select(source, workspaceId).where('id', '=', id));
}

/** The profile of sandboxes and deployments that name none; undefined where the workspace has no default. */
export function readDefaultProfile(source: Source, workspaceId: string): Promise<ProxyProfile | undefined> {
  return open(source, workspaceId, select(source, workspaceId).where('is_default', '=', true));
}

/** The versions of the documents, by the ids of their profiles; one that was deleted is left out. */
export async function readProfileVersions(
  db: Reader,
  workspaceId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('proxy_profiles')
    .select(['id', 'version'])
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', ids)
    .execute();
  return new Map(rows.map(({ id, version }) => [id, version]));
}

/** The channel on which every process learns of changed documents. A notification may be lost: the versions are the truth. */
export const profileChannel: Channel = 'proxy_profiles';

const change = z.strictObject({ workspaceId: z.guid(), profileId: z.guid(), version: z.int() });
export type ProfileChange = z.output<typeof change>;

/** With the commit of the transaction. */
export function notifyOfProfile(trx: Transaction, changed: ProfileChange): Promise<void> {
  return notify(trx, profileChannel, JSON.stringify(changed));
}

/** Undefined for what notifyOfProfile did not send. */
export function parseProfileChange(payload: string): ProfileChange | undefined {
  try {
    return change.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}

/** Where the document of a profile is sealed for. */
export function placeOfProfile(workspaceId: string, id: string, version: number): SealedPlace {
  return { workspaceId, purpose: 'proxy_profile', name: id, version };
}

function select({ db }: Source, workspaceId: string) {
  return db
    .selectFrom('proxy_profiles')
    .select(['id', 'name', 'version', 'sealed'])
    .where('workspace_id', '=', workspaceId);
}

async function open(
  source: Source,
  workspaceId: string,
  query: ReturnType<typeof select>,
): Promise<ProxyProfile | undefined> {
  const row = await query.executeTakeFirst();
  if (row === undefined) return undefined;
  const { id, name, version, sealed } = row;
  const opened = await openDocument(source, placeOfProfile(workspaceId, id, version), sealed);
  return { id, name, version, opened };
}

// Attachments of runs in the database: their names, types and sizes, and the objects that have their contents.
import type { Database, Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { storable } from '../runs/run-derivation.ts';
import { newestKey, signedAddress } from './signed-address.ts';
import type { StoredArtifact } from './artifacts.ts';
import '../store/trace-rows.ts';

export type NewAttachment = StoredArtifact & {
  readonly run_id: string;
  readonly name: string;
  /** As the client has sent it. */
  readonly mime_type: string;
};

/**
 * Of several with one run and one name the last counts; one that was stored before is replaced, so that a request may be sent again.
 * Objects that no row names any more are removed by the sweep.
 */
export async function saveAttachments(
  db: Database,
  workspaceId: string,
  list: readonly NewAttachment[],
): Promise<void> {
  const rows = list.map(({ run_id, name, mime_type, size, object }) => ({
    ...{ workspace_id: workspaceId, run_id: run_id.toLowerCase(), name: storable(name) },
    ...{ mime_type: toMimeType(mime_type), size, object },
  }));
  const last = new Map(rows.map((row) => [`${row.run_id} ${row.name}`, row]));
  // In one order, so that two requests with the same attachments take turns.
  const sorted = [...last].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
  for (let at = 0; at < sorted.length; at += ROWS_OF_STATEMENT)
    await db
      .insertInto('trace_attachments')
      .values(sorted.slice(at, at + ROWS_OF_STATEMENT))
      .onConflict((conflict) =>
        conflict.columns(['workspace_id', 'run_id', 'name']).doUpdateSet((eb) => ({
          ...{ mime_type: eb.ref('excluded.mime_type'), size: eb.ref('excluded.size') },
          object: eb.ref('excluded.object'),
        })),
      )
      .execute();
}

/** A statement has at most 65,535 parameters. */
const ROWS_OF_STATEMENT = 1_000;

const MIME_TYPE = /^[\w.+-]{1,63}\/[\w.+-]{1,127}$/;
const UNKNOWN_TYPE = 'application/octet-stream';

/** Without parameters. */
function toMimeType(given: string): string {
  const [type = ''] = given.split(';', 1);
  return MIME_TYPE.test(type.trim()) ? type.trim().toLowerCase() : UNKNOWN_TYPE;
}

/** `s3_urls` of the public API, by names of attachments with `attachment.` before them. */
export type AttachmentUrls = Readonly<
  Record<string, { readonly presigned_url: string; readonly mime_type: string }>
>;

/** By the id of a run: paths on this platform that are signed for an hour. Runs without attachments are left out. */
export async function attachmentUrls(
  db: Reader,
  workspaceId: string,
  runIds: readonly string[],
  now = Date.now(),
): Promise<ReadonlyMap<string, AttachmentUrls>> {
  const rows = await listAttachments(db, workspaceId, runIds);
  if (rows.length === 0) return new Map();
  const key = await newestKey(db);
  return new Map(
    [...Map.groupBy(rows, ({ run_id }) => run_id)].map(([runId, ofRun]) => [
      runId,
      Object.fromEntries(
        ofRun.map(({ name, mime_type, object }) => [
          `attachment.${name}`,
          { presigned_url: signedAddress(key, object, now), mime_type },
        ]),
      ),
    ]),
  );
}

/** Of all runs together, and of each: as many as one request may bring. */
const MAX_LISTED = 10_000;
const MAX_OF_RUN = 1_000;

/** In the order of their names. */
export async function listAttachments(db: Reader, workspaceId: string, runIds: readonly string[]) {
  if (runIds.length === 0) return [];
  const all = db
    .selectFrom('trace_attachments')
    .select(['run_id', 'name', 'mime_type', 'size', 'object'])
    .select(sql<string>`row_number() over (partition by run_id order by name)`.as('place'))
    .where('workspace_id', '=', workspaceId)
    .where('run_id', 'in', runIds);
  return db
    .selectFrom(all.as('a'))
    .select(['run_id', 'name', 'mime_type', 'size', 'object'])
    .where(sql<boolean>`place <= ${sql.lit(MAX_OF_RUN)}`)
    .orderBy('run_id')
    .orderBy('name')
    .limit(MAX_LISTED)
    .execute();
}

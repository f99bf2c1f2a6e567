// The records of boxes, and the route that lists them, newest first: what the runtime reads from its sidecars is checked and stored with the records of sandboxes, under the id
// of the box, so that a box with a name that was used before does not show them.
import { parseWith, z } from '../../base/schema.ts';
import type { Log } from '../../base/log.ts';
import type { BoxRecords, Runtime } from '../runtime/contract.ts';
import { inWorkspace } from '../api/access.ts';
import { createCursorQuery } from '../api/paging.ts';
import { type Route, UNTRACKED_READ, defineRoute } from '../api/route.ts';
import {
  listRecords,
  recordBatch,
  storableTime,
  storedRecord,
  storeRecords,
} from '../sandbox-records/contract.ts';
import type { Store } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import { oneBox } from './box-routes.ts';
import { findBox } from './boxes.ts';

type Intake = { readonly runtime: Runtime; readonly store: Pick<Store, 'db'>; readonly log: Log };

/** Ends with the signal. */
export async function followRecords({ runtime, store, log }: Intake, signal: AbortSignal): Promise<void> {
  await runtime.readRecords((batch) => takeBatch({ store, log }, batch), signal);
}

/** Rejects where the batch must be offered again. What can never be stored is dropped with a line in the log. */
export async function takeBatch(
  { store, log }: Pick<Intake, 'store' | 'log'>,
  { boxId, source, records }: BoxRecords,
): Promise<void> {
  const whole = parseWith(recordBatch, { source, records });
  const batch = whole.ok ? whole.value : { source, records: fitting(source, records) };
  if (!whole.ok) {
    const fields = whole.issues.slice(0, 3).map(({ loc }) => loc.join('.'));
    const dropped = records.length - batch.records.length;
    log.warn({ box: boxId, dropped, fields }, 'records of a sandbox do not fit and are not stored');
    if (batch.records.length === 0) return;
  }
  const { db } = store;
  const box = await db
    .updateTable('boxes')
    .set({ active_at: sql<Date>`now()` })
    .where('id', '=', boxId)
    .returning('workspace_id')
    .executeTakeFirst();
  if (box === undefined) return;
  await storeRecords(db, { workspaceId: box.workspace_id, sandbox: boxId }, batch);
}

/** Each for itself: one that does not fit must not take the others with it. */
function fitting(source: string, records: readonly object[]) {
  return records.flatMap((record) => {
    const parsed = parseWith(recordBatch, { source, records: [record] });
    return parsed.ok ? parsed.value.records : [];
  });
}

export const boxRecordsRoute: Route = defineRoute({
  ...oneBox,
  method: 'GET',
  path: '/boxes/{name}/records',
  summary: 'List the records of a sandbox, newest first',
  access: inWorkspace('sandboxes:read'),
  tracking: UNTRACKED_READ,
  query: createCursorQuery(100, 1_000).extend({
    start_time: storableTime.optional().describe('Inclusive'),
    end_time: storableTime.optional().describe('Exclusive'),
  }),
  responses: { 200: z.strictObject({ records: z.array(storedRecord), next_cursor: z.string().nullable() }) },
  failures: [404],
  async handle({ db, workspaceId, params: { name }, query: { limit, cursor, start_time, end_time } }) {
    const { id } = await findBox(db, { workspaceId, box: name });
    const window = { limit, cursor, startTime: toDate(start_time), endTime: toDate(end_time) };
    const { records, cursor: next_cursor } = await listRecords(db, { workspaceId, sandbox: id }, window);
    return { body: { records, next_cursor } };
  },
});

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

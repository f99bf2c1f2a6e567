// Parts of runs as ingestion makes them, with defaults for what a test does not look at.
import { randomUUID } from 'node:crypto';
import {
  bitOf,
  type PlacedPart,
  runFieldNames,
  RUN_FIELDS,
  type RunValues,
} from '../../../../src/platform/traces/runs/run-part.ts';
import type { Database, Store } from '../../../../src/platform/store/database.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import type { TraceStore } from '../../../../src/platform/traces/trace-store.ts';

export type GivenPart = {
  readonly id?: string;
  readonly isPatch?: boolean;
  readonly project?: PlacedPart['project'];
  readonly start?: Partial<PlacedPart['start']>;
  readonly values?: RunValues;
};

export const startTime = '2026-11-20T12:00:00.123456Z';

export function partOf({
  id = randomUUID(),
  isPatch = false,
  project,
  start = {},
  values = {},
}: GivenPart): PlacedPart {
  const given = runFieldNames
    .filter((field) => RUN_FIELDS[field].some((column) => column in values))
    .reduce((bits, field) => bits | bitOf(field), 0);
  return {
    id,
    project: project ?? { rank: 2, id: '00000000-0000-4000-8000-000000000001' },
    start: {
      ...{ rank: 2, start_time: startTime, trace_id: id, parent_run_id: null, parent_run_ids: [] },
      dotted_order: `20261120T120000123456Z${id}`,
      ...start,
    },
    given,
    patched: isPatch ? given : 0,
    values,
  };
}

/** A workspace in an organization of its own. */
export async function addWorkspace(db: Database): Promise<string> {
  const organization = { display_name: 'one', plan: 'enterprise', config: '{}' };
  const { id } = await db
    .insertInto('organizations')
    .values(organization)
    .returning('id')
    .executeTakeFirstOrThrow();
  const row = { organization_id: id, display_name: randomUUID(), tenant_handle: null };
  return (await db.insertInto('workspaces').values(row).returning('id').executeTakeFirstOrThrow()).id;
}

/** As a request does. */
export async function mergeRuns(
  database: Pick<Store, 'db' | 'write'>,
  workspaceId: string,
  parts: readonly PlacedPart[],
  store: TraceStore = postgresTraceStore,
): Promise<void> {
  await store.prepareRuns(database.db, parts);
  await database.write((trx) => store.mergeRuns(trx, workspaceId, parts));
}

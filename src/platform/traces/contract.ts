// What other modules need of traces: that there is a tracing project of a name, that it goes, a token with which a runner sends the runs
// of a deployment, and pages of whole runs for exports.
import { randomUUID } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import { mintKey } from '../identity/api-key.ts';
import type { Database, Reader, Transaction } from '../store/database.ts';
import type { StatementEnding } from '../store/postgres/statement-ending.ts';
import type { Fixed } from '../store/sql.ts';

declare module '../store/tables.ts' {
  interface Tables {
    readonly trace_tokens: {
      readonly deployment_id: Fixed<string>;
      readonly workspace_id: Fixed<string>;
      hash: Buffer;
      readonly created_at: Fixed<Date>;
    };
  }
}

/** One that is there already, with whatever runs, stays as it is. */
export async function ensureTracingProject(
  trx: Transaction,
  workspaceId: string,
  name: string,
): Promise<void> {
  await trx
    .insertInto('trace_projects')
    .values({
      ...{ workspace_id: workspaceId, id: randomUUID(), name },
      ...{ description: null, extra: null, end_time: null },
      ...{ default_dataset_id: null, reference_dataset_id: null },
    })
    .onConflict((conflict) => conflict.constraint('trace_projects_name').doNothing())
    .execute();
}

/** With its runs, which are not found any more and removed by a job. Returns its id; undefined: there is none of the name. */
export async function removeTracingProject(
  trx: Transaction,
  workspaceId: string,
  name: string,
): Promise<string | undefined> {
  const gone = await trx
    .deleteFrom('trace_projects')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .returning('id')
    .executeTakeFirst();
  return gone?.id;
}

/**
 * It lets its holder send runs to the workspace of the deployment, and nothing else, until the deployment is deleted or gets another one.
 * Undefined: the deployment is gone, or is being deleted.
 */
export async function issueTraceToken(
  db: Database,
  { workspaceId, deploymentId }: { readonly workspaceId: string; readonly deploymentId: string },
): Promise<Secret | undefined> {
  const { text, hash } = mintKey('trace');
  const stored = await db
    .insertInto('trace_tokens')
    .columns(['deployment_id', 'workspace_id', 'hash'])
    .expression(({ selectFrom, val }) =>
      selectFrom('deployments')
        .select(['id', 'workspace_id', val(hash).as('hash')])
        .where('workspace_id', '=', workspaceId)
        .where('id', '=', deploymentId)
        .where('status', '<>', 'AWAITING_DELETE'),
    )
    .onConflict((conflict) => conflict.column('deployment_id').doUpdateSet({ hash }))
    .returning('deployment_id')
    .executeTakeFirst();
  return stored && new Secret(text);
}

/** Waits for requests that have begun with it: what they write is there when this returns. */
export async function revokeTraceToken(trx: Transaction, deploymentId: string): Promise<void> {
  await trx.deleteFrom('trace_tokens').where('deployment_id', '=', deploymentId).execute();
}

/** Whole runs in pages, for exports. The order is that of the starts of runs, and of their ids among equal ones. */
export type RunPages = {
  /**
   * One snapshot of the database, whose statements are cancelled with the signal of `ending`. Throws InvalidInput for a filter that is none,
   * and RunTooLarge.
   */
  readPage(db: Database, query: RunPageQuery, ending?: StatementEnding): Promise<RunPage>;
  /** The JSON of a stored payload. Throws a RangeError where it has more than `maxBytes`. */
  unpack(stored: Buffer, maxBytes: number): Buffer | Promise<Buffer>;
};

export type RunPageQuery = {
  readonly workspaceId: string;
  readonly projectId: string;
  /** ISO 8601 in UTC, the end exclusive. */
  readonly window: { readonly from: string; readonly to: string };
  /** In the language of the queries of runs. */
  readonly filter?: string;
  /** What is read of each run, besides its id and its start. */
  readonly columns: ReadonlySet<RunPageColumn>;
  /** The last run of the pages before. */
  readonly after?: RunCursor;
  readonly maxRows: number;
  /** Of the payloads as they are stored: the page ends with the run that reaches it. */
  readonly maxBytes: number;
  /** Of the payloads of one run as they are stored; no limit when absent. */
  readonly maxRunBytes?: number;
};

/** The payloads of a run have more bytes than a query of pages takes of one run: not all of them were read. */
export class RunTooLarge extends Error {
  override readonly name = 'RunTooLarge';
  readonly runId: string;
  /** With which the limit was passed. */
  readonly field: RunPageColumn;

  constructor(runId: string, field: RunPageColumn) {
    super('the payloads of a run have more bytes than are read of one run');
    this.runId = runId;
    this.field = field;
  }
}

/** `next`: with which the query continues; absent where nothing follows. A page without runs may have one. */
export type RunPage = {
  readonly runs: readonly PagedRun[];
  readonly next?: Pick<RunPageQuery, 'window' | 'after'>;
};

/** The place of a run in the order; the time is ISO 8601 in UTC with microseconds. */
export type RunCursor = { readonly start_time: string; readonly id: string };

/** Times are microseconds since 1970, and numbers decimal text. */
export type PagedRun = {
  readonly id: string;
  readonly start_time: string;
  readonly session_id?: string;
  readonly trace_id?: string;
  readonly parent_run_id?: string | null;
  readonly parent_run_ids?: readonly string[];
  readonly reference_example_id?: string | null;
  readonly name?: string;
  readonly run_type?: string;
  readonly end_time?: string | null;
  readonly status?: string;
  readonly is_root?: boolean;
  readonly dotted_order?: string;
  readonly tags?: readonly string[];
  readonly total_tokens?: string | null;
  readonly prompt_tokens?: string | null;
  readonly completion_tokens?: string | null;
  readonly total_cost?: string | null;
  readonly prompt_cost?: string | null;
  readonly completion_cost?: string | null;
  readonly first_token_time?: string | null;
  /** JSON; absent for a run without feedback. */
  readonly feedback_stats?: string;
  readonly inputs?: PagedPayload;
  readonly outputs?: PagedPayload;
  readonly extra?: PagedPayload;
  readonly events?: PagedPayload;
  readonly error?: PagedPayload;
};
/** JSON, or bytes as they are stored: `unpack` gives their JSON. */
export type PagedPayload = string | Buffer | null;
export type RunPageColumn = keyof PagedRun;

export function toCursor({ id, start_time: micros }: Pick<PagedRun, 'id' | 'start_time'>): RunCursor {
  const seconds = new Date(Number(micros.slice(0, -6) || '0') * 1000).toISOString().slice(0, 19);
  return { start_time: `${seconds}.${micros.slice(-6).padStart(6, '0')}Z`, id };
}

export async function hasTracingProject(db: Reader, workspaceId: string, id: string): Promise<boolean> {
  const found = await db
    .selectFrom('trace_projects')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .executeTakeFirst();
  return found !== undefined;
}

// `POST /runs/query`, `POST /runs/stats` and `GET /runs/{run_id}`, by the public API. What is read before the response begins is read
// before the transaction, which has the event alone.
import { DomainError, InvalidInput } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { inWorkspace } from '../../api/access.ts';
import { traceErrors } from '../../api/contract/error-formats.ts';
import { byteStream } from '../../api/responses.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Reader } from '../../store/database.ts';
import { flag } from '../projects/project-schema.ts';
import { noProject } from '../projects/projects.ts';
import type { RunPlace } from '../trace-store.ts';
import { formatRunCursor, parseRunCursor } from './run-cursor.ts';
import { chooseFields, run, type ShownRun } from './run-fields.ts';
import { writeRuns } from './run-json.ts';
import { countHeld, countLookedUp, type Lookups, lookUp, type Page, writePage } from './run-page.ts';
import { type GivenQuery, runQuery, runSelection } from './run-query-schema.ts';
import { runStats } from './run-stats-schema.ts';
import { toSelection } from './run-selection.ts';

const shared = { tag: 'Runs', errors: traceErrors, access: inWorkspace('runs:read') } as const;

export function createQueryRoutes(lookups: Lookups): readonly Route[] {
  return [queryRoute(lookups), statsRoute(lookups), readRoute(lookups)];
}

const MIB = 1024 * 1024;

const page = z.object({
  runs: z.array(run),
  cursors: z.object({ next: z.string().nullable(), prev: z.null() }),
});

const queryRoute = (lookups: Lookups): Route =>
  defineRoute({
    ...shared,
    path: '/runs/query',
    method: 'POST',
    summary: 'Find runs by filters, in pages',
    tracking: { operation: 'query_runs' },
    body: runQuery,
    responses: { 200: byteStream<Page>('application/json', { schema: page, heldBytes: 2 * MIB }) },
    failures: [404, 408],
    async prepare({ db, workspaceId, body }) {
      await confirmProjects(db, workspaceId, body.session ?? []);
      return findPage(lookups, db, workspaceId, body);
    },
    handle: async ({ body }, source) => ({ source, resources: body.session ?? [] }),
    stream: ({ db, workspaceId }, source) => writePage({ store: lookups.store, db, workspaceId }, source),
  });

const statsRoute = ({ store }: Lookups): Route =>
  defineRoute({
    ...shared,
    path: '/runs/stats',
    method: 'POST',
    summary: 'Statistics of the runs that filters find',
    tracking: { untracked: 'it has no run: numbers alone' },
    body: runSelection,
    responses: { 200: runStats },
    failures: [404, 408],
    async prepare({ db, workspaceId, body }) {
      await confirmProjects(db, workspaceId, body.session ?? []);
      return store.readRunStats(db, toSelection(workspaceId, body, Date.now()));
    },
    handle: async (_, body) => ({ body }),
  });

/** The id is enough: what else clients send leads other stores to the run. */
const readRoute = (lookups: Lookups): Route =>
  defineRoute({
    ...shared,
    path: '/runs/{run_id}',
    method: 'GET',
    summary: 'Read a run',
    tracking: { operation: 'read_run' },
    params: z.strictObject({ run_id: z.guid() }),
    query: z.strictObject({
      exclude_s3_stored_attributes: flag.default(false).describe('Leave links to attachments out'),
      exclude_serialized: flag.default(false),
    }),
    responses: {
      200: byteStream<Pick<Page, 'shown' | 'fields'>>('application/json', { schema: run, heldBytes: MIB }),
    },
    failures: [404, 408],
    async prepare({ db, workspaceId, params: { run_id }, query }) {
      const [ids, deadlineMs] = [[run_id.toLowerCase()], lookups.store.startDeadline()];
      const runs = await lookups.store.queryRuns(db, {
        workspaceId,
        ids,
        order: 'desc',
        limit: 1,
        deadlineMs,
      });
      if (runs.length === 0) throw new DomainError('not_found', 'There is no such run in this workspace');
      const fields = new Set(chooseFields(undefined));
      if (query.exclude_serialized) fields.delete('serialized');
      if (query.exclude_s3_stored_attributes) fields.delete('s3_urls');
      return { shown: await lookUp(lookups, db, { workspaceId, runs, fields, deadlineMs }), fields };
    },
    handle: async (_, source) => ({ source, resources: idsOf(source.shown) }),
    async *stream({ db, workspaceId }, { shown, fields }) {
      for await (const { pieces } of writeRuns({ store: lookups.store, db, workspaceId, fields }, shown))
        yield* pieces;
    },
  });

function idsOf(shown: readonly ShownRun[]): readonly string[] {
  return shown.map(({ run: { id } }) => id);
}

/** Throws `not_found` for one that the workspace does not have. */
async function confirmProjects(db: Reader, workspaceId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const projects = db.selectFrom('trace_projects').select('id').where('workspace_id', '=', workspaceId);
  const found = await projects.where('id', 'in', ids).execute();
  if (found.length < new Set(ids.map((id) => id.toLowerCase())).size) throw noProject();
}

async function findPage(lookups: Lookups, db: Reader, workspaceId: string, body: GivenQuery): Promise<Page> {
  const { cursor, limit, select, skip_pagination, skip_prev_cursor: _, ...scope } = body;
  const size = limit ?? 100;
  const after = cursor ? readCursor(cursor, scope) : undefined;
  const deadlineMs = lookups.store.startDeadline();
  const found = await lookups.store.queryRuns(db, {
    deadlineMs,
    ...toSelection(workspaceId, body, Date.now()),
    order: body.order ?? 'desc',
    // One more says whether a page follows.
    limit: size + 1,
    ...(after === undefined ? {} : { after }),
  });
  const fields = chooseFields(select);
  const asked = found.slice(0, size);
  const runs = asked.slice(0, countHeld(asked));
  const looked = await lookUp(lookups, db, { workspaceId, runs, fields, deadlineMs });
  const shown = looked.slice(0, countLookedUp(looked));
  return {
    shown,
    fields,
    hasMore: shown.length < asked.length || (found.length > size && skip_pagination !== true),
    toCursor: (last) => formatRunCursor(last, scope),
  };
}

function readCursor(cursor: string, scope: unknown): RunPlace {
  const found = parseRunCursor(cursor, scope);
  if (found !== undefined) return found;
  const msg = 'Invalid cursor: use cursors.next of the page before, with the same filters and order';
  throw new InvalidInput([{ loc: ['body', 'cursor'], msg, type: 'value_error' }]);
}

// Exports by the public API: created, read, cancelled, with a run for each day; what is wrong in a body is said with its place.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import {
  createExportScene,
  EXPORTS,
  type ExportScene,
  type ExportTenant,
  exportOf,
} from '../export-scene.ts';

const NOBODY = '00000000-0000-4000-8000-000000000000';

let scene: ExportScene;
let other: ExportTenant;

beforeAll(async () => {
  scene = await createExportScene();
  other = await scene.addTenant();
});
afterAll(() => scene[Symbol.asyncDispose]());

const create = (days: number, more: object = {}) => scene.ask('POST', EXPORTS, exportOf(scene, days, more));
const countRows = async (): Promise<number> => {
  const { db } = scene.api.database.owner;
  const tables = ['exports', 'export_runs'] as const;
  const counts = tables.map((table) => db.selectFrom(table).select('id').execute());
  return (await Promise.all(counts)).flat().length;
};

describe('a new export', () => {
  it('has all fields of the public record, and a run for each UTC day', async () => {
    const { status, body } = await create(3, {
      filter: 'eq(run_type, "llm")',
      export_fields: ['id', 'name'],
    });
    expect(status).toBe(200);
    expect(body).toEqual({
      ...{ id: expect.any(String), tenant_id: scene.workspaceId, session_id: scene.projectId },
      ...{ bulk_export_destination_id: scene.destinationId, status: 'CREATED', source_bulk_export_id: null },
      ...{ start_time: '2026-01-01T00:00:00.000000Z', end_time: '2026-01-04T00:00:00.000000Z' },
      ...{ filter: 'eq(run_type, "llm")', format: 'Parquet', format_version: 'v1', compression: 'gzip' },
      ...{ interval_hours: null, export_fields: ['id', 'name'], finished_at: null },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    });
    expect((await scene.ask('GET', `${EXPORTS}/${body.id}`)).body).toEqual(body);
    expect((await scene.ask('GET', EXPORTS)).body[0]).toEqual(body);
    const runs = (await scene.ask('GET', `${EXPORTS}/${body.id}/runs`)).body;
    expect(runs.map((run: { readonly start_time: string }) => run.start_time.slice(0, 10))).toEqual([
      '2026-01-01',
      '2026-01-02',
      '2026-01-03',
    ]);
    expect(runs[1]).toEqual({
      ...{
        id: expect.any(String),
        bulk_export_id: body.id,
        status: 'CREATED',
        retry_number: 0,
        errors: null,
      },
      ...{ start_time: '2026-01-02T00:00:00.000000Z', end_time: '2026-01-03T00:00:00.000000Z' },
      ...{ created_at: expect.any(String), updated_at: expect.any(String), finished_at: null },
      metadata: {
        ...{ prefix: 'traces/exports', execution_backend: null, result: null },
        ...{ start_time: '2026-01-02T00:00:00.000000Z', end_time: '2026-01-03T00:00:00.000000Z' },
      },
    });
    expect((await scene.ask('GET', `${EXPORTS}/${body.id}/runs/${runs[1].id}`)).body).toEqual(runs[1]);
  });

  it('is a schedule where it has an interval', async () => {
    const start = new Date(Date.now() - 86_400_000).toISOString();
    const { status, body } = await create(1, { start_time: start, end_time: null, interval_hours: 168 });
    expect([status, body.status, body.end_time]).toEqual([200, 'INTERVALSCHEDULED', null]);
    const runs = await scene.ask('GET', `${EXPORTS}/runs?source_bulk_export_id=${body.id}`);
    expect([runs.status, runs.body]).toEqual([200, []]);
  });

  it.each<[string, object, readonly (string | number)[]]>([
    ['an unknown column', { export_fields: ['id', 'password'] }, ['body', 'export_fields', 1]],
    ['a column twice', { export_fields: ['id', 'id'] }, ['body', 'export_fields', 1]],
    ['no end', { end_time: null }, ['body', 'end_time']],
    ['an end and an interval', { interval_hours: 1 }, ['body', 'end_time']],
    ['an empty window', { end_time: '2026-01-01T00:00:00Z' }, ['body', 'end_time']],
    ['a window of more than 400 days', { end_time: '2027-02-05T00:00:01Z' }, ['body', 'end_time']],
    ['an interval of no hours', { end_time: null, interval_hours: 0 }, ['body', 'interval_hours']],
    ['an interval of more than a week', { end_time: null, interval_hours: 169 }, ['body', 'interval_hours']],
    [
      'a schedule from long ago',
      { start_time: '2020-01-01T00:00:00Z', end_time: null, interval_hours: 1 },
      ['body', 'start_time'],
    ],
    ['a filter that is none', { filter: 'eq(name' }, ['body', 'filter', 7]],
    ['all experiments', { all_experiments: true }, ['body', 'all_experiments']],
    ['another format', { format: 'CSV' }, ['body', 'format']],
    ['another compression', { compression: 'lzma' }, ['body', 'compression']],
    ['a time that is none', { start_time: 'yesterday' }, ['body', 'start_time']],
  ])('with %s is refused with the place, and writes nothing', async (_, more, loc) => {
    const before = await countRows();
    const { status, body } = await create(1, more);
    expect(status).toBe(422);
    expect(body.detail.map((issue: { readonly loc: unknown }) => issue.loc)).toContainEqual(loc);
    expect(await countRows()).toBe(before);
  });

  it('says everything that is wrong at once', async () => {
    const { status, body } = await create(1, { export_fields: ['x'], compression: 'lzma', filter: 'no' });
    expect(status).toBe(422);
    expect(new Set(body.detail.map((issue: { readonly loc: readonly string[] }) => issue.loc[1]))).toEqual(
      new Set(['export_fields', 'compression', 'filter']),
    );
  });

  it('needs a destination and a project of its workspace', async () => {
    const before = await countRows();
    const foreign = await create(1, { bulk_export_destination_id: other.destinationId });
    expect([foreign.status, foreign.body.detail]).toEqual([404, 'Bulk export destination not found']);
    const project = await create(1, { session_id: other.projectId });
    expect([project.status, project.body.detail]).toEqual([404, 'Tracing project not found']);
    expect(await countRows()).toBe(before);
  });
});

describe('an export of another workspace, or of nobody', () => {
  it('is 404 at every route', async () => {
    const id = await scene.addExport(1);
    const [run] = await scene.runsOf(id);
    const paths = [
      ['GET', `${EXPORTS}/${id}`],
      ['PATCH', `${EXPORTS}/${id}`],
      ['GET', `${EXPORTS}/${id}/runs`],
      ['GET', `${EXPORTS}/${id}/runs/${run?.id}`],
      ['GET', `${EXPORTS}/runs?source_bulk_export_id=${id}`],
    ] as const;
    for (const [method, path] of paths) {
      const found = await scene.ask(method, path, method === 'PATCH' ? {} : undefined, other);
      expect([found.status, found.body.detail]).toEqual([404, 'Bulk export not found']);
    }
    const unknown = await scene.ask('GET', `${EXPORTS}/${NOBODY}`);
    expect([unknown.status, unknown.body.detail]).toEqual([404, 'Bulk export not found']);
    const wrong = await scene.ask('GET', `${EXPORTS}/${id}/runs/${NOBODY}`);
    expect([wrong.status, wrong.body.detail]).toEqual([404, 'Bulk export run not found']);
    expect(await scene.statusOf(id)).toBe('CREATED');
  });
});

describe('cancelling', () => {
  it.each([{}, { status: 'Cancelled' }, { status: 'CANCELLED' }, { status: 'cancelled' }])(
    'by %o ends the export and its runs, and a second time changes nothing',
    async (body) => {
      const id = await scene.addExport(2);
      const cancelled = await scene.ask('PATCH', `${EXPORTS}/${id}`, body);
      expect([cancelled.status, cancelled.body.status]).toEqual([200, 'CANCELLED']);
      expect(cancelled.body.finished_at).not.toBeNull();
      expect((await scene.runsOf(id)).map(({ status }) => status)).toEqual(['CANCELLED', 'CANCELLED']);
      const again = await scene.ask('PATCH', `${EXPORTS}/${id}`, body);
      expect([again.status, again.body]).toEqual([200, cancelled.body]);
    },
  );

  it('is the only change that there is', async () => {
    const id = await scene.addExport(1);
    const { status, body } = await scene.ask('PATCH', `${EXPORTS}/${id}`, { status: 'Running' });
    expect([status, body.detail[0].loc]).toEqual([422, ['body', 'status']]);
    expect(await scene.statusOf(id)).toBe('CREATED');
  });

  it('is refused with 400 for an export that has ended', async () => {
    const id = await scene.addExport(1);
    const { db } = scene.api.database.owner;
    await db.updateTable('exports').set({ status: 'COMPLETED' }).where('id', '=', id).execute();
    const { status, body } = await scene.ask('PATCH', `${EXPORTS}/${id}`, {});
    expect([status, body.detail]).toEqual([
      400,
      'The bulk export has ended (COMPLETED) and cannot be cancelled',
    ]);
    expect(await scene.statusOf(id)).toBe('COMPLETED');
  });
});

it('states are written as in the OpenAPI description where exports.status_case is title', async () => {
  await using titled = await createExportScene({ status_case: 'title' });
  const id = await titled.addExport(1);
  expect((await titled.ask('GET', `${EXPORTS}/${id}`)).body.status).toBe('Created');
  const [run] = (await titled.ask('GET', `${EXPORTS}/${id}/runs`)).body;
  expect(run.status).toBe('Created');
  const start = new Date().toISOString();
  const schedule = { start_time: start, end_time: null, interval_hours: 1 };
  const made = await titled.ask('POST', EXPORTS, exportOf(titled, 1, schedule));
  expect(made.body.status).toBe('IntervalScheduled');
  const cancelled = await titled.ask('PATCH', `${EXPORTS}/${made.body.id}`, {});
  expect(cancelled.body.status).toBe('Cancelled');
});

it('a refused creation says after how many seconds another one is allowed', async () => {
  await using limited = await createExportScene({ creations_per_hour: 2 });
  const [first, second] = [await limited.addExport(1), await limited.addExport(1)];
  const { db } = limited.api.database.owner;
  const age = (id: string, minutes: number) =>
    sql`update exports set created_at = now() - make_interval(mins => ${minutes}) where id = ${id}`.execute(
      db,
    );
  await age(first, 50);
  await age(second, 20);
  const refused = await limited.ask('POST', EXPORTS, exportOf(limited, 1));
  expect(refused.status).toBe(429);
  const seconds = Number(refused.headers.get('retry-after'));
  expect(seconds).toBeLessThanOrEqual(600);
  expect(seconds).toBeGreaterThan(570);
  await age(first, 61);
  expect(await limited.addExport(1)).toBeDefined();
  const again = await limited.ask('POST', EXPORTS, exportOf(limited, 1));
  expect(again.status).toBe(429);
  const later = Number(again.headers.get('retry-after'));
  expect([later > 2_370, later <= 2_400]).toEqual([true, true]);
});

it('quotas of creations and schedules are counted where they are set', async () => {
  await using limited = await createExportScene({ creations_per_hour: 2, max_schedules: 1 });
  const start = new Date().toISOString();
  const schedule = exportOf(limited, 1, { start_time: start, end_time: null, interval_hours: 1 });
  const asked = [schedule, schedule, exportOf(limited, 1), exportOf(limited, 1)];
  const statuses: number[] = [];
  for (const body of asked) statuses.push((await limited.ask('POST', EXPORTS, body)).status);
  expect(statuses).toEqual([200, 429, 200, 429]);
});

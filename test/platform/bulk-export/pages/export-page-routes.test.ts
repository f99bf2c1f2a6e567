// The pages of exports: what a person sees of exports and their runs. Texts of others are text.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimRun, type ClaimedRun } from '../../../../src/platform/bulk-export/scheduling/run-claims.ts';
import { endAttempt } from '../../../../src/platform/bulk-export/scheduling/run-ending.ts';
import { createCheckpoints, renewLease } from '../../../../src/platform/bulk-export/scheduling/run-lease.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import type { Asked } from '../../../support/platform-api.ts';
import { createExportScene, type ExportScene } from '../export-scene.ts';

let scene: ExportScene;

beforeAll(async () => {
  scene = await createExportScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const RULES = { maxRetries: 20, retryDelayMs: 30_000 };

async function claimed(): Promise<ClaimedRun> {
  const limits = { maxExports: 15, maxRuns: 45 };
  const found = await claimRun(scene.api.database.store, { clock: scene.clock, limits });
  if (found === undefined) throw new Error('no run may begin');
  return found;
}

const fail = (run: ClaimedRun, message: string, isRetryable: boolean) =>
  scene.api.database.store.write(async (trx) =>
    endAttempt(
      trx,
      { ...run, now: await scene.clock(trx), rules: RULES },
      { is: 'failed', isRetryable, message },
    ),
  );

const get = (path: string, tenant?: Parameters<ExportScene['ask']>[3]): Promise<Asked> =>
  scene.ask('GET', path, undefined, tenant);
const textOf = ({ text }: Asked): string =>
  text.replaceAll(/<(?:style|script)>.*?<\/\w+>|<[^>]*>/gs, ' ').replaceAll(/\s+/g, ' ');

describe('the page of exports', () => {
  it('shows states, windows, and how far the runs are', async () => {
    const id = await scene.addExport(3);
    const run = await claimed();
    const checkpoints = createCheckpoints(scene.api.database.store, run, scene.clock);
    await checkpoints.commitFile({ rows: 1_234_567, files: [{ key: 'a', rows: 1_234_567, bytes: 1 }] });
    const page = await get('/exports');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    // It changes by itself.
    expect(page.headers.get('refresh')).toBe('5');
    expect(textOf(page)).toMatch(
      /RUNNING 2026-01-01 00:00:00\.000 2026-01-04 00:00:00\.000 0 of 3 1.234.567 0/,
    );
    expect(page.text).toContain(`href="/exports/${id}"`);
    // Which exports of several projects it is.
    expect(page.text).toContain(`href="/traces/${scene.projectId}"`);
    await scene.ask('PATCH', `/api/v1/bulk-exports/${id}`, {});
    const ended = await get(`/exports/${id}`);
    expect(ended.headers.get('refresh')).toBeNull();
    expect(textOf(ended)).toContain('CANCELLED');
  });

  it('says how to begin where there are none', async () => {
    const empty = await scene.addTenant();
    expect(textOf(await get('/exports', empty))).toContain('This workspace has no exports yet');
  });

  it('asks for a session where there is none, and shows nothing of another workspace', async () => {
    const id = await scene.addExport(1);
    const refused = await scene.api.ask('GET', `/exports/${id}`);
    expect(refused.status).toBe(401);
    expect(refused.text).toContain('<a href="/login?next=%2Fexports" data-sign-in="">');
    const other = await scene.addTenant();
    const foreign = await get(`/exports/${id}`, other);
    expect([foreign.status, textOf(foreign)]).toEqual([
      404,
      expect.stringContaining('Bulk export not found'),
    ]);
    await scene.ask('PATCH', `/api/v1/bulk-exports/${id}`, {});
  });
});

describe('the page of an export', () => {
  it('shows its runs with rows, retries, errors and files', async () => {
    const filter = 'eq(name, "<script>alert(1)</script>")';
    const id = await scene.addExport(2, { filter });
    const first = await claimed();
    await fail(first, 'the <b>storage</b> is away', true);
    const second = await claimed();
    await renewLease(scene.api.database.store.db, { ...second, rows: 4_200 }, scene.clock);
    const checkpoints = createCheckpoints(scene.api.database.store, second, scene.clock);
    await checkpoints.commitFile({ rows: 10, files: [{ key: 'exports/one.parquet', rows: 10, bytes: 1 }] });
    const page = await get(`/exports/${id}`);
    expect(page.text).not.toContain('<script>alert');
    expect(page.text).not.toContain('<b>storage');
    const text = textOf(page);
    expect(text).toContain('eq(name, &#34;&#60;script&#62;alert(1)&#60;/script&#62;&#34;)');
    expect(text).toMatch(/2026-01-01 CREATED retry at [\d: .-]+ 0 0 1 0 attempt 1: the &#60;b&#62;storage/);
    // With those that are read, of a file that is not complete.
    expect(text).toMatch(/2026-01-02 RUNNING 4.200 1 0 0 1 file exports\/one\.parquet 10 rows/);
    await scene.ask('PATCH', `/api/v1/bulk-exports/${id}`, {});
  });

  it('shows the last errors of many', async () => {
    const id = await scene.addExport(1);
    for (let n = 0; n < 12; n += 1) {
      await fail(await claimed(), `failure ${n}`, n < 11);
      scene.pass(30_000);
    }
    const text = textOf(await get(`/exports/${id}`));
    expect(text).toContain('FAILED');
    expect(text).toMatch(/9 before attempt 10: failure 9 attempt 11: failure 10 attempt 12: failure 11/);
  });
});

it('a schedule says when its next export is made, and leads to its project', async () => {
  const start = new Date().toISOString();
  const id = await scene.addExport(1, { start_time: start, end_time: null, interval_hours: 24 });
  const page = await get(`/exports/${id}`);
  expect(textOf(page)).toMatch(/INTERVALSCHEDULED .* every 24 h next export 20/);
  expect(page.text).toContain(`href="/traces/${scene.projectId}"`);
});

describe('the exports that a schedule has made', () => {
  const child = (id: string, count: number) =>
    sql`
    insert into exports (id, workspace_id, destination_id, session_id, source_id, status, start_time, end_time, format_version,
      compression, created_at, updated_at)
    select gen_random_uuid(), workspace_id, destination_id, session_id, id, 'COMPLETED', '2026-01-02T00:00:00.0000' || (10 + n) || 'Z',
      '2026-01-03T00:00:00.000000Z', format_version, compression, created_at + make_interval(mins => n), updated_at
    from exports, generate_series(1, ${count}) n where id = ${id}`.execute(scene.api.database.owner.db);

  it('are on its page, the newest first, and only those', async () => {
    const start = new Date().toISOString();
    const id = await scene.addExport(1, { start_time: start, end_time: null, interval_hours: 24 });
    const other = await scene.addExport(1);
    expect(textOf(await get(`/exports/${id}`))).toContain('This schedule has made no exports yet.');
    await child(id, 51);
    const page = await get(`/exports/${id}`);
    expect(page.text.match(/data-row="0"/g)).toHaveLength(50);
    expect(page.text).not.toContain(`href="/exports/${other}"`);
    expect(page.text).toContain(`<a rel="next" href="/exports/${id}?offset=50">Older</a>`);
    const next = await get(`/exports/${id}?offset=50`);
    expect(next.text.match(/data-row="0"/g)).toHaveLength(1);
    expect(next.text).toContain(`<a rel="prev" href="/exports/${id}">Newer</a>`);
    await scene.ask('PATCH', `/api/v1/bulk-exports/${other}`, {});
  });
});

it('pages of traces lead to the exports of the workspace and of a project, and those lead back', async () => {
  const tenant = await scene.addTenant();
  const workspace = `workspace=${tenant.workspaceId}`;
  const projects = await get(`/traces?${workspace}`, tenant);
  expect(projects.text).toContain(`<a href="/exports?${workspace}">Exports</a>`);
  const runs = await get(`/traces/${tenant.projectId}`, tenant);
  expect(runs.text).toContain(
    `<a href="/exports?session_id=${tenant.projectId}">Exports of this project</a>`,
  );
  expect(textOf(await get(`/exports?session_id=${tenant.projectId}`, tenant))).toContain(
    'This project has no exports yet',
  );
  const id = await scene.addExport(1, {}, tenant);
  const listed = await get(`/exports?session_id=${tenant.projectId}`, tenant);
  expect(listed.text).toContain(`href="/exports/${id}"`);
  expect(listed.text).toContain(`href="/traces/${tenant.projectId}"`);
  expect(listed.text).toContain('<a href="/traces">Traces</a>');
  const elsewhere = await get(`/exports?session_id=${scene.projectId}`, tenant);
  expect(elsewhere.text).not.toContain(`href="/exports/${id}"`);
  await scene.ask('PATCH', `/api/v1/bulk-exports/${id}`, {}, tenant);
});

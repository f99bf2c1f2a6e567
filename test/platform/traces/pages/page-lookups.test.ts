// How much the pages look up for one request: projects page by page, the first runs of a large trace, a few requests of a caller at once.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/platform/store/sql.ts';
import { toMicroseconds } from '../../../../src/platform/traces/runs/run-time.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { mergeRuns, partOf } from '../store/trace-scene.ts';

let api: PlatformApi;
let organizationId: string;
let workspaceId: string;
let key: string;
beforeAll(async () => {
  api = await createPlatformApi();
  organizationId = await api.addOrganization();
  workspaceId = await api.addWorkspace(organizationId);
  key = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
});
afterAll(() => api[Symbol.asyncDispose]());

const get = (path: string, as = key): Promise<Asked> => api.ask('GET', path, { key: as });

async function addProjects(names: readonly string[]): Promise<readonly string[]> {
  const rows = names.map((name) => ({ workspace_id: workspaceId, id: randomUUID(), name }));
  await api.database.owner.db.insertInto('trace_projects').values(rows).execute();
  return rows.map(({ id }) => id);
}

/** A run of the project, so many seconds ago. */
const runAt = (projectId: string, seconds: number, start = {}) =>
  partOf({
    project: { rank: 2, id: projectId },
    start: { start_time: toMicroseconds(Date.now() - seconds * 1_000) ?? '', ...start },
  });

const projectsOf = ({ text }: Asked): readonly string[] =>
  [...text.matchAll(/data-row="0" href="\/traces\/([0-9a-f-]{36})/g)].map(([, id = '']) => id);
const linkOf = ({ text }: Asked, rel: 'prev' | 'next'): string | undefined =>
  new RegExp(`<a rel="${rel}" href="([^"]*)">`).exec(text)?.[1]?.replaceAll('&#38;', '&');

describe('the page of projects', () => {
  it('has 50 of them, the one with the latest run first, and links to those before and after', async () => {
    const names = Array.from({ length: 101 }, (_, at) => `paged ${at}`);
    const ids = await addProjects([...names, 'another']);
    const runs = ids.slice(0, 101).map((id, at) => runAt(id, at + 1));
    await mergeRuns(api.database.store, workspaceId, runs);
    const first = await get(`/traces?name=PAGED&workspace=${workspaceId}`);
    const second = await get(linkOf(first, 'next') ?? '');
    const third = await get(linkOf(second, 'next') ?? '');
    expect([first, second, third].flatMap(projectsOf)).toEqual(ids.slice(0, 101));
    expect([first, second, third].map((page) => projectsOf(page).length)).toEqual([50, 50, 1]);
    expect([linkOf(first, 'prev'), linkOf(third, 'next')]).toEqual([undefined, undefined]);
    expect(await get(linkOf(third, 'prev') ?? '')).toMatchObject({ status: 200, text: second.text });
    expect(linkOf(second, 'prev')).toBe(`/traces?name=PAGED&offset=0&workspace=${workspaceId}`);
  });

  it('leads no further than projects are looked up, and says which number is too large', async () => {
    expect(await get('/traces?offset=10000')).toMatchObject({ status: 200 });
    for (const offset of ['10001', '-1', '1.5', 'x']) {
      const { status, text } = await get(`/traces?offset=${offset}`);
      expect([offset, status, text.includes('offset')]).toEqual([offset, 422, true]);
    }
  });

  it('is read by at most eight requests of a caller at once, and the next one gets a Retry-After', async () => {
    const other = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
    const [locked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lock = api.database.owner.db.transaction().execute(async (trx) => {
      await sql`lock table trace_projects in access exclusive mode`.execute(trx);
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const asked = Array.from({ length: 9 }, () => get('/traces'));
    const refused = await Promise.race(asked);
    const ofOther = get('/traces', other);
    release.resolve();
    await lock;
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    const statuses = await Promise.all([...asked, ofOther].map(async (one) => (await one).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(9);
  });
});

describe('the page of a trace', () => {
  it('has the first thousand runs by their start, and says so', async () => {
    const [project = ''] = await addProjects(['large trace']);
    const root = runAt(project, 3_600);
    const child = { trace_id: root.id, parent_run_id: root.id, parent_run_ids: [root.id] };
    const children = Array.from({ length: 1_000 }, (_, at) => runAt(project, 3_599 - at, child));
    await mergeRuns(api.database.store, workspaceId, [root, ...children]);
    const { text } = await get(`/traces/${project}/${root.id}`);
    const shown = [...text.matchAll(/\?run=([0-9a-f-]{36})#run/g)].map(([, id]) => id);
    expect(shown).toEqual([root, ...children.slice(0, 999)].map(({ id }) => id));
    expect(text).toContain('These are the first 1000 runs of the trace, by their start.');
    const last = children.at(-1)?.id ?? '';
    const chosen = await get(`/traces/${project}/${root.id}?run=${last}`);
    expect(chosen.text).toContain(`<code>${last}</code>`);
  });
});

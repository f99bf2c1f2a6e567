import { randomBytes, randomUUID } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toMicroseconds } from '../../../../src/platform/traces/runs/run-time.ts';
import type { RunValues } from '../../../../src/platform/traces/runs/run-part.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { partOf, mergeRuns } from '../store/trace-scene.ts';

let api: PlatformApi;
let workspaceId: string;
let key: string;
let otherKey: string;
let thirdKey: string;
beforeAll(async () => {
  api = await createPlatformApi();
  const organizationId = await api.addOrganization();
  workspaceId = await api.addWorkspace(organizationId);
  key = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', workspaceId);
  const other = await api.addWorkspace(organizationId);
  otherKey = await api.addServiceKey(organizationId, 'WORKSPACE_VIEWER', other);
  const third = await api.addOrganization();
  thirdKey = await api.addServiceKey(third, 'WORKSPACE_VIEWER', await api.addWorkspace(third));
});
afterAll(() => api[Symbol.asyncDispose]());

const ask = (method: string, path: string, body?: unknown, as = key): Promise<Asked> =>
  api.ask(method, path, { key: as, ...(body === undefined ? {} : { body }) });
const query = (body: object, as = key): Promise<Asked> => ask('POST', '/runs/query', body, as);

/** Within the window that is the default. */
const now = Date.now();
const secondsAgo = (seconds: number): string => toMicroseconds(now - seconds * 1000) ?? '';

async function addProject(): Promise<string> {
  const row = { workspace_id: workspaceId, name: randomUUID() };
  const insert = api.database.owner.db.insertInto('trace_projects').values(row).returning('id');
  return (await insert.executeTakeFirstOrThrow()).id;
}

/** Roots, the first of which is the latest. */
async function addRuns(project: string, ...all: readonly RunValues[]): Promise<readonly string[]> {
  const parts = all.map((values, index) =>
    partOf({ values, project: { rank: 2, id: project }, start: { start_time: secondsAgo(60 + index) } }),
  );
  await mergeRuns(api.database.store, workspaceId, parts);
  return parts.map(({ id }) => id);
}

const idsOf = ({ body }: Asked): readonly string[] => body.runs.map((run: { readonly id: string }) => run.id);

describe('a query of runs', () => {
  it('has each run with the JSON of its payloads as it was sent', async () => {
    const project = await addProject();
    const inputs = '{"a":12345678901234567890, "a":"\\u0000\\ud800"}';
    const [id] = await addRuns(project, {
      ...{
        name: 'a run',
        run_type: 'llm',
        tags: ['x'],
        inputs_json: Buffer.from(inputs),
        inputs_text: '{"a":1}',
      },
      ...{
        outputs_json: zstdCompressSync(Buffer.from('{"text":"ä"}')),
        error: 'x',
        error_json: Buffer.from('"x\\u0000"'),
      },
      usage_in_outputs: { input_tokens: 2, output_tokens: 3, total_tokens: 5, total_cost: '0.000000001' },
    });
    const found = await query({ session: [project] });
    expect([found.status, found.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(found.text).toContain(`"inputs":${inputs},"outputs":{"text":"ä"},`);
    expect(found.body).toMatchObject({
      runs: [
        {
          ...{ id, name: 'a run', run_type: 'llm', status: 'error', session_id: project, trace_id: id },
          ...{ start_time: secondsAgo(60), end_time: null, is_root: true, tags: ['x'], error: 'x\0' },
          ...{ total_tokens: 5, prompt_tokens: 2, total_cost: '0.000000001', prompt_cost: null },
          ...{ extra: null, child_run_ids: [], parent_run_ids: [], feedback_stats: null, s3_urls: null },
          ...{ inputs_preview: '{"a":1}', trace_tier: 'longlived' },
        },
      ],
      cursors: { next: null },
    });
    const read = await ask('GET', `/api/v1/runs/${id}?session_id=${project}`);
    expect([read.status, read.body]).toEqual([200, found.body.runs[0]]);
  });

  it('has the selected fields alone', async () => {
    const project = await addProject();
    const [id] = await addRuns(project, { name: 'one', inputs_json: Buffer.from('{}') });
    const selected = await query({ session: [project], select: ['name', 'inputs', 'of a newer client'] });
    expect(selected.body.runs).toEqual([{ id, name: 'one', inputs: {} }]);
    expect((await query({ session: [project], select: ['id'] })).body.runs).toEqual([{ id }]);
  });

  it('goes on from page to page by the cursor, with the same filters alone', async () => {
    const project = await addProject();
    const ids = await addRuns(project, ...Array.from({ length: 5 }, (_, index) => ({ name: `${index}` })));
    const scope = { session: [project], limit: 2 };
    const first = await query(scope);
    const second = await query({ ...scope, cursor: first.body.cursors.next });
    const third = await query({ ...scope, cursor: second.body.cursors.next, limit: 100 });
    expect([first, second, third].map(idsOf)).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
    expect(third.body.cursors.next).toBeNull();
    expect(idsOf(await query({ ...scope, order: 'asc' }))).toEqual(ids.slice(3).toReversed());
    expect((await query({ ...scope, skip_pagination: true })).body.cursors.next).toBeNull();
    for (const changed of [{ is_root: true }, { order: 'asc' }, { cursor: 'e30' }]) {
      const refused = await query({ ...scope, cursor: first.body.cursors.next, ...changed });
      expect([refused.status, refused.body.detail[0].loc]).toEqual([422, ['body', 'cursor']]);
    }
  });

  it('does not go on from a place that no run has, such as the year 0', async () => {
    const project = await addProject();
    await addRuns(project, {}, {});
    for (const order of ['asc', 'desc']) {
      const scope = { session: [project], limit: 1, order };
      const { cursors } = (await query(scope)).body;
      const content = JSON.parse(Buffer.from(cursors.next, 'base64url').toString());
      for (const start_time of ['0000-01-01T00:00:00.000000Z', '1969-12-31T23:59:59.999999Z', '2026-01-01']) {
        const cursor = Buffer.from(JSON.stringify({ ...content, start_time })).toString('base64url');
        const refused = await query({ ...scope, cursor });
        expect([refused.status, refused.body.detail?.[0]?.loc]).toEqual([422, ['body', 'cursor']]);
      }
    }
  });

  it('ends a page early whose names, tags and orders would be too large', async () => {
    const project = await addProject();
    const long = 'x'.repeat(60_000);
    const ids = await addRuns(project, ...Array.from({ length: 10 }, () => ({ name: long, tags: [long] })));
    const scope = { session: [project], select: ['name'], skip_pagination: true };
    const found: string[] = [];
    let cursor: string | null | undefined;
    const sizes: number[] = [];
    do {
      const page = await query({ ...scope, ...(cursor ? { cursor } : {}) });
      found.push(...idsOf(page));
      sizes.push(idsOf(page).length);
      cursor = page.body.cursors.next;
    } while (cursor);
    expect([found, sizes]).toEqual([ids, [4, 4, 2]]);
  });

  it('waits for clients that do not read what the key has asked for', { tags: ['long'] }, async () => {
    const rest = Array.from({ length: 16 }, () =>
      api.ask('POST', '/runs/query', { key: thirdKey, body: {}, isLeftOpen: true }),
    );
    for (const { status } of await Promise.all(rest)) expect(status).toBe(200);
    const refused = await query({}, thirdKey);
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true]);
    expect((await query({})).status).toBe(200);
  });

  it('ends a page early that would be too large, with the cursor of the rest', async () => {
    const project = await addProject();
    const text = JSON.stringify({ text: randomBytes(1_500_000).toString('base64') });
    const plain = Buffer.from(text);
    const zeros = JSON.stringify({ text: '0'.repeat(20_000_000) });
    const ids = await addRuns(
      project,
      { inputs_json: plain, outputs_json: zstdCompressSync(plain) },
      { inputs_json: zstdCompressSync(Buffer.from(zeros)) },
      { name: 'the rest' },
    );
    const scope = { session: [project], select: ['inputs', 'outputs'], skip_pagination: true };
    const first = await query(scope);
    expect(first.text.startsWith(`{"runs":[{"id":"${ids[0]}","inputs":${text},"outputs":${text}},`)).toBe(
      true,
    );
    expect(first.text).toContain(`"inputs":${zeros},"outputs":null}],`);
    const second = await query({ ...scope, cursor: first.body.cursors.next });
    expect(second.body).toMatchObject({ runs: [{ id: ids[2], inputs: null }], cursors: { next: null } });
  });

  it('by ids leaves the other filters aside', async () => {
    const ids = await addRuns(await addProject(), {}, {}, {});
    const found = await query({ id: [ids[0], ids[2]], filter: 'eq(name, "x")', end_time: secondsAgo(600) });
    expect(idsOf(found)).toEqual([ids[0], ids[2]]);
    expect(idsOf(await query({ id: ids }, otherKey))).toEqual([]);
  });

  it('has a condition for each field', async () => {
    const project = await addProject();
    const example = randomUUID();
    const [failed, ended, plain] = await addRuns(
      project,
      { error: 'broken', name: 'failed' },
      {
        end_time: secondsAgo(1),
        run_type: 'tool',
        reference_example_id: example,
        inputs_json: Buffer.from('"needle"'),
        inputs_text: '"needle"',
      },
      { name: 'plain' },
    );
    const rows: readonly [object, ...unknown[]][] = [
      [{ error: true }, failed],
      [{ error: false }, ended, plain],
      [{ run_type: 'tool' }, ended],
      [{ reference_example: [example] }, ended],
      [{ trace: plain }, plain],
      [{ parent_run: plain }],
      [{ is_root: false }],
      [{ execution_order: 1 }, failed, ended, plain],
      [{ query: 'needle' }, ended],
      [{ filter: 'eq(name, "plain")' }, plain],
      [{ search_filter: 'search("broken")' }, failed],
      [{ trace_filter: 'eq(name, "failed")' }, failed],
      [{ tree_filter: 'gt(latency, 1)' }, ended],
      [{ start_time: secondsAgo(61.5) }, failed, ended],
      [{ end_time: secondsAgo(61.5) }, plain],
    ];
    for (const [condition, ...expected] of rows)
      expect([condition, idsOf(await query({ session: [project], ...condition }))]).toEqual([
        condition,
        expected,
      ]);
    const stats = await ask('POST', '/runs/stats', { session: [project], error: true });
    expect([stats.status, stats.body]).toMatchObject([
      200,
      { run_count: 1, error_rate: 1, latency_p50: null },
    ]);
  });

  it('has what feedback says, and what is below each run', async () => {
    const project = await addProject();
    const [id = ''] = await addRuns(project, {});
    const child = partOf({
      project: { rank: 2, id: project },
      start: { start_time: secondsAgo(59), trace_id: id, parent_run_id: id, parent_run_ids: [id] },
    });
    await mergeRuns(api.database.store, workspaceId, [child]);
    const feedback = [
      { key: 'good', score: 1, value: '"yes"' },
      { key: 'good', score: 0, value: '"yes"' },
      { key: '__proto__', score: null, value: '5' },
    ].map((one) => ({
      ...one,
      workspace_id: workspaceId,
      run_id: id,
      trace_id: id,
      session_id: project,
      comment: null,
      correction: null,
      feedback_source: null,
    }));
    await api.database.owner.db.insertInto('trace_feedback').values(feedback).execute();
    const { text, body } = await ask('GET', `/runs/${id}`);
    expect(text).toContain('"good":{"n":2,"avg":0.5,"values":{"yes":2}}');
    expect(text).toContain('"__proto__":{"n":1,"avg":null,"values":{}}');
    expect(body).toMatchObject({ child_run_ids: [child.id], direct_child_run_ids: [child.id] });
    expect(idsOf(await query({ filter: 'and(eq(feedback_key, "good"), gt(feedback_score, 0.5))' }))).toEqual([
      id,
    ]);
  });

  it('that is invalid gets each issue with its position', async () => {
    const refused = await query({
      ...{
        filter: 'eq(nome, "x")',
        tree_filter: 'and(',
        start_time: 'yesterday',
        limit: 101,
        session: ['x'],
      },
    });
    expect(refused.status).toBe(422);
    const issues = refused.body.detail as readonly { readonly loc: unknown; readonly msg: string }[];
    expect(issues.map(({ loc }) => loc)).toEqual([
      ['body', 'session', 0],
      ['body', 'start_time'],
      ['body', 'filter', 3],
      ['body', 'tree_filter', 4],
      ['body', 'limit'],
    ]);
    expect(issues[2]?.msg).toMatch(/^At character 3: Unknown field/);
    const day = 24 * 3600;
    const long = { start_time: secondsAgo(401 * day), end_time: secondsAgo(1) };
    for (const body of [long, { start_time: secondsAgo(402 * day) }]) {
      const { status, body: detail } = await query(body);
      expect([status, detail.detail[0].loc]).toEqual([422, ['body', 'start_time']]);
    }
    expect((await query({ start_time: secondsAgo(400 * day) })).status).toBe(200);
  });

  it('is refused for a project of another workspace, as is a run of it', async () => {
    const project = await addProject();
    const [id] = await addRuns(project, {});
    for (const path of ['/runs/query', '/runs/stats'])
      expect((await ask('POST', path, { session: [project] }, otherKey)).status).toBe(404);
    expect((await ask('GET', `/runs/${id}`, undefined, otherKey)).status).toBe(404);
    expect(idsOf(await query({ trace: id }, otherKey))).toEqual([]);
    await api.database.owner.db.deleteFrom('trace_projects').where('id', '=', project).execute();
    expect((await ask('GET', `/runs/${id}`)).status).toBe(404);
    expect(idsOf(await query({ trace: id }))).toEqual([]);
  });

  it('is in the audit log, as is the reading of a run', async () => {
    const project = await addProject();
    const [id] = await addRuns(project, {});
    await query({ session: [project] });
    await ask('GET', `/runs/${id}`);
    const events = await api.database.owner.db.selectFrom('audit_events').selectAll().orderBy('id').execute();
    const seen = events.map((event) => JSON.stringify(event));
    expect(seen.some((text) => text.includes('query_runs') && text.includes(project))).toBe(true);
    expect(seen.some((text) => text.includes('read_run') && text.includes(String(id)))).toBe(true);
  });
});

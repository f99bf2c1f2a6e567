import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { placeFeedback } from '../../../../src/platform/traces/feedback/feedback-placement.ts';
import { listFeedback, saveFeedback } from '../../../../src/platform/traces/feedback/feedback.ts';
import { newFeedback } from '../../../../src/platform/traces/feedback/feedback-schema.ts';
import {
  readFeedbackStats,
  readProjectFeedbackStats,
} from '../../../../src/platform/traces/feedback/feedback-stats.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createTestWiring } from '../../../support/test-wiring.ts';
import { partOf, mergeRuns } from '../store/trace-scene.ts';

let api: PlatformApi;
let organizationId: string;
let workspaceId: string;
let key: string;
let otherKey: string;
let otherWorkspaceId: string;
beforeAll(async () => {
  api = await createPlatformApi();
  organizationId = await api.addOrganization();
  workspaceId = await api.addWorkspace(organizationId);
  const addKey = (workspace: string): Promise<string> =>
    api.addServiceKey(organizationId, 'WORKSPACE_USER', workspace);
  key = await addKey(workspaceId);
  otherWorkspaceId = await api.addWorkspace(organizationId);
  otherKey = await addKey(otherWorkspaceId);
});
afterAll(() => api[Symbol.asyncDispose]());

const ask = (method: string, path: string, body?: unknown, as = key): Promise<Asked> =>
  api.ask(method, path, { key: as, ...(body === undefined ? {} : { body }) });
const give = async (fields: object): Promise<Asked['body']> => {
  const { status, body } = await ask('POST', '/feedback', { key: 'correct', ...fields });
  expect([status, body]).toMatchObject([200, {}]);
  return body;
};
/** A child run, and the project and the trace that it is in. */
async function addRun(id = randomUUID()): Promise<{ id: string; session_id: string; trace_id: string }> {
  const [session_id, trace_id] = [randomUUID(), randomUUID()];
  const part = partOf({
    ...{ id, project: { rank: 2, id: session_id } },
    start: { trace_id, parent_run_id: trace_id, parent_run_ids: [trace_id] },
  });
  await mergeRuns(api.database.store, workspaceId, [part]);
  return { id, session_id, trace_id };
}

describe('feedback', () => {
  it('about a run has the trace and the project of the run, whatever it says itself', async () => {
    const { id: run_id, session_id, trace_id } = await addRun();
    const id = randomUUID().toUpperCase();
    const given = {
      ...{ id, run_id, trace_id: run_id, session_id: randomUUID(), score: true, value: { a: ['x'] } },
      ...{ comment: 'good', correction: { result: 42 }, feedback_source: { type: 'api', metadata: {} } },
    };
    const made = await give({ ...given, created_at: '2020-01-01T00:00:00Z', extend_trace_retention: true });
    const { session_id: _, ...kept } = given;
    expect(made).toMatchObject({ ...kept, id: id.toLowerCase(), score: 1, session_id, trace_id });
    expect(Date.parse(made.created_at)).toBeGreaterThan(Date.parse('2026-01-01'));
    for (const prefix of ['', '/api', '/api/v1'])
      expect((await ask('GET', `${prefix}/feedback/${id}`)).body).toEqual(made);
  });

  it('sent again is one, and the last of an id counts', async () => {
    const feedback = { id: randomUUID(), run_id: randomUUID(), score: 0.25, comment: 'first' };
    const first = await give(feedback);
    const second = await give({ ...feedback, comment: null, value: 'second' });
    expect(second).toMatchObject({
      score: 0.25,
      comment: null,
      value: 'second',
      created_at: first.created_at,
    });
    const { body } = await ask('GET', `/feedback?run=${feedback.run_id}`);
    expect(body).toEqual([second]);
    const twice = [
      newFeedback.parse({ ...feedback, key: 'a' }),
      newFeedback.parse({ ...feedback, key: 'b' }),
    ];
    await api.database.store.write((trx) => saveFeedback(trx, workspaceId, twice, postgresTraceStore));
    expect((await ask('GET', `/feedback/${feedback.id}`)).body).toMatchObject({ key: 'b', comment: 'first' });
  });

  it('is changed where the change has a field, and deleted', async () => {
    const made = await give({ trace_id: randomUUID(), score: 1, value: 'old', comment: 'stays' });
    expect(made.run_id).toBe(made.trace_id);
    const { id } = made;
    const changed = await ask('PATCH', `/feedback/${id}`, { score: null, value: 'new' });
    expect(changed.body).toMatchObject({ id, score: null, value: 'new', comment: 'stays' });
    expect((await ask('GET', `/feedback/${id}`)).body).toEqual(changed.body);
    expect((await ask('DELETE', `/feedback/${id}`)).status).toBe(200);
    expect((await ask('DELETE', `/feedback/${id}`)).status).toBe(404);
    expect((await ask('PATCH', `/feedback/${id}`, { score: 1 })).status).toBe(404);
  });

  it('of another workspace is not found, changed or replaced by any route', async () => {
    const made = await give({ run_id: randomUUID(), comment: 'mine' });
    const path = `/feedback/${made.id}`;
    for (const [method, body] of [['GET'], ['PATCH', { comment: 'x' }], ['DELETE']] as const)
      expect([method, (await ask(method, path, body, otherKey)).status]).toEqual([method, 404]);
    expect((await ask('GET', `/feedback?run=${made.run_id}`, undefined, otherKey)).body).toEqual([]);
    const same = { id: made.id, run_id: made.run_id, key: 'correct', comment: 'theirs' };
    expect((await ask('POST', '/feedback', same, otherKey)).status).toBe(200);
    expect((await ask('GET', path)).body).toEqual(made);
  });

  it('about a project needs one of the workspace', async () => {
    const { body: project } = await ask('POST', '/sessions', { name: randomUUID() });
    expect(await give({ session_id: project.id })).toMatchObject({ run_id: null, session_id: project.id });
    const about = { key: 'k', session_id: project.id };
    expect((await ask('POST', '/feedback', about, otherKey)).status).toBe(404);
    const { status, body } = await ask('POST', '/feedback', { key: 'k', session_id: null });
    expect([status, body.details]).toMatchObject([422, [{ loc: ['body', 'run_id'] }]]);
    expect((await ask('GET', `/feedback?session=${project.id}&level=session`)).body).toHaveLength(1);
    expect((await ask('GET', `/feedback?session=${project.id}&level=run`)).body).toEqual([]);
  });

  it('with characters that cannot be stored has replacements for them', async () => {
    const made = await give({ run_id: randomUUID(), key: 'a\0', value: { '\ud800': '\0' }, comment: '\0b' });
    expect(made).toMatchObject({ key: 'a\ufffd', value: { '\ufffd': '\ufffd' }, comment: '\ufffdb' });
    const wrong = { run_id: randomUUID(), key: 'k', value: ['a list'] };
    expect((await ask('POST', '/feedback', wrong)).status).toBe(422);
  });

  it('is listed by key, source, comment and score, newest first and in pages', async () => {
    const run_id = randomUUID();
    const made = [
      await give({ run_id, key: 'a', score: 0, feedback_source: { type: 'api' } }),
      await give({ run_id, key: 'b', comment: 'c', feedback_source: { type: 'model' } }),
      await give({ run_id, key: 'c' }),
    ];
    const find = async (query: string): Promise<readonly string[]> =>
      (await ask('GET', `/feedback?run=${run_id}${query}`)).body.map(
        (one: { readonly key: string }) => one.key,
      );
    expect(made.map((one) => one.key)).toEqual(['a', 'b', 'c']);
    expect(await find('')).toEqual(['c', 'b', 'a']);
    expect(await find('&limit=1&offset=1')).toEqual(['b']);
    expect(await find('&key=a&key=c')).toEqual(['c', 'a']);
    expect(await find('&source=model')).toEqual(['b']);
    expect(await find('&has_comment=true')).toEqual(['b']);
    expect(await find('&has_score=false')).toEqual(['c', 'b']);
  });

  it('is summed up for each run and project: number, average and counts of texts', async () => {
    const run = await addRun();
    const about = { run_id: run.id, key: 'k' };
    await give({ ...about, score: 1, value: 'good' });
    await give({ ...about, score: 0.5, value: 'good' });
    await give({ ...about, value: 'x'.repeat(300) });
    await give({ ...about, key: '__proto__', value: 7 });
    const { db } = api.database.store;
    const stats = await readFeedbackStats(db, workspaceId, [run.id, randomUUID()]);
    const expected = {
      k: { n: 3, avg: 0.75, values: { good: 2, ['x'.repeat(250)]: 1 } },
      ['__proto__']: { n: 1, avg: null, values: {} },
    };
    expect([...stats]).toEqual([[run.id, expected]]);
    expect(Object.keys(stats.get(run.id) ?? {})).toEqual(['__proto__', 'k']);
    expect(await readProjectFeedbackStats(db, workspaceId, [run.session_id])).toEqual(
      new Map([[run.session_id, expected]]),
    );
    expect(await readFeedbackStats(db, workspaceId, [])).toEqual(new Map());
  });

  it('is summed up whatever its scores are: their squares are no numbers', async () => {
    const run = await addRun();
    for (const score of [1e200, -1e200, 1.5e308, 1.5e308]) await give({ run_id: run.id, key: 'k', score });
    const { db } = api.database.store;
    const stats = await readFeedbackStats(db, workspaceId, [run.id]);
    expect(stats.get(run.id)).toEqual({ k: { n: 4, avg: 7.5e307, values: {} } });
    expect((await ask('GET', `/runs/${run.id}`)).status).toBe(200);
  });

  it('has fields of at most 64 KiB, because a list of it is in memory', async () => {
    const about = { run_id: randomUUID(), key: 'k' };
    const fits = 'ä'.repeat(32_767);
    const { id } = await give({ ...about, comment: fits, value: fits, correction: fits });
    for (const field of ['comment', 'value', 'correction', 'feedback_source']) {
      const long = { a: fits };
      const given = { ...about, [field]: field === 'comment' ? `${fits}a` : long };
      const { status, body } = await ask('POST', '/feedback', given);
      expect([status, body.detail[0].loc]).toEqual([422, ['body', field]]);
      if (field === 'feedback_source') continue;
      expect((await ask('PATCH', `/feedback/${id}`, given)).status).toBe(422);
    }
  });

  it('is summed up and listed within the time of a query, with a cure where that is too short', async () => {
    const { db } = api.database.store;
    await expect(readFeedbackStats(db, workspaceId, [randomUUID()], 0)).rejects.toMatchObject({
      kind: 'timeout',
      message: expect.stringContaining('feedback_stats'),
    });
    const query = { source: ['api'], limit: 10, offset: 0 };
    await expect(listFeedback(db, workspaceId, query, 0)).rejects.toMatchObject({
      kind: 'timeout',
      message: expect.stringContaining('`session`'),
    });
    const listed = (await ask('GET', '/openapi.json')).body.paths['/api/v1/feedback'].get.responses;
    expect(Object.keys(listed)).toContain('408');
  });

  it('of a project that was deleted is gone with it, before a job has removed it', async () => {
    const { body: project } = await ask('POST', '/sessions', { name: randomUUID() });
    const { id } = await give({ session_id: project.id });
    const deleter = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
    expect((await ask('DELETE', `/sessions/${project.id}`, undefined, deleter)).status).toBe(200);
    expect((await ask('GET', `/feedback?session=${project.id}`)).body).toEqual([]);
    for (const [method, body] of [['GET'], ['PATCH', { comment: 'x' }], ['DELETE']] as const)
      expect([method, (await ask(method, `/feedback/${id}`, body)).status]).toEqual([method, 404]);
  });

  it('that came before its run gets the trace and the project of it', async () => {
    const run_id = randomUUID();
    const early = await give({ run_id });
    const lost = await give({ run_id: randomUUID() });
    const { session_id, trace_id } = await addRun(run_id);
    const { store } = api.database;
    const signal = new AbortController().signal;
    const log = createLog('info', { write: () => undefined });
    await placeFeedback.run({}, { id: '1', store, log, signal, send: createTestWiring().send });
    expect((await ask('GET', `/feedback/${early.id}`)).body).toEqual({ ...early, session_id, trace_id });
    expect((await ask('GET', `/feedback/${lost.id}`)).body).toEqual(lost);
  });

  it('of each workspace has its turn before the next thousand of another one', async () => {
    const run_id = randomUUID();
    await sql`
      insert into trace_feedback (workspace_id, run_id, key, created_at)
      select ${workspaceId}, gen_random_uuid(), 'k', now() - interval '1 hour' from generate_series(1, 3000)`.execute(
      api.database.owner.db,
    );
    const early = await ask('POST', '/feedback', { key: 'k', run_id }, otherKey);
    await mergeRuns(api.database.store, otherWorkspaceId, [partOf({ id: run_id })]);
    let steps = 0;
    const signal = Object.defineProperty(new AbortController().signal, 'aborted', {
      get: () => (steps += 1) > 2,
    });
    const log = createLog('info', { write: () => undefined });
    const { store } = api.database;
    await placeFeedback.run({}, { id: '1', store, log, signal, send: createTestWiring().send });
    const placed = await ask('GET', `/feedback/${early.body.id}`, undefined, otherKey);
    expect(placed.body).toMatchObject({ trace_id: run_id });
  });
});

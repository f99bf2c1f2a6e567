import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { placeParts } from '../../../../src/platform/traces/projects/project-placing.ts';
import type { RunPart, RunProject } from '../../../../src/platform/traces/runs/run-part.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { addWorkspace, partOf, mergeRuns } from '../store/trace-scene.ts';

let database: TestDatabase;
let workspaceId: string;
beforeAll(async () => {
  database = await createTestDatabase();
  workspaceId = await addWorkspace(database.owner.db);
});
afterAll(() => database[Symbol.asyncDispose]());

const place = (...parts: readonly RunPart[]) =>
  database.store.write((trx) => placeParts(trx, workspaceId, parts));
const of = (project: RunProject, id: string = randomUUID()): RunPart => ({ ...partOf({ id }), project });

it('as many new projects as a request has runs are made at once', async () => {
  const names = Array.from({ length: 10_000 }, (_, at) => `project ${at}`);
  const placed = await place(...names.map((name) => of({ rank: 2, name })));
  expect(new Set(placed.map(({ project }) => project.id)).size).toBe(10_000);
});

it('a run that names no project is not placed in the one of its first part once that is gone', async () => {
  const id = randomUUID();
  const [first] = await place(of({ rank: 2, name: 'gone' }, id));
  const { store } = database;
  await mergeRuns(store, workspaceId, [first!]);
  expect((await place(of({ rank: 0, name: 'default' }, id)))[0]?.project.id).toBe(first?.project.id);
  const gone = store.db.deleteFrom('trace_projects').where('workspace_id', '=', workspaceId);
  await gone.where('name', '=', 'gone').execute();
  const [second] = await place(of({ rank: 0, name: 'default' }, id));
  const projects = store.db
    .selectFrom('trace_projects')
    .select('name')
    .where('workspace_id', '=', workspaceId);
  expect(await projects.where('id', '=', second!.project.id).execute()).toEqual([{ name: 'default' }]);
});

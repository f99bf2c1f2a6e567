// A module of ten lines has tables, tenants, roles, limits on what is sent, and a description, without a test of its own.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { defineRoute, UNTRACKED_READ } from '../../../src/platform/api/route.ts';
import type { Module } from '../../../src/platform/module.ts';
import { readAllMigrations } from '../../../src/platform/migrations.ts';
import type { Generated } from '../../../src/platform/store/sql.ts';
import { createScratch } from '../../support/scratch.ts';
import { findDefects, openNewRoutes } from './new-route-checks.ts';
import { createExample, send } from './scene.ts';

declare module '../../../src/platform/store/tables.ts' {
  interface Tables {
    readonly test_notes: {
      readonly id: Generated<string>;
      readonly workspace_id: string;
      readonly text: string;
    };
  }
}

const SQL = `create table test_notes (id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade, text text not null);
grant select, insert on test_notes to sallyport_app;
`;
const note = z.strictObject({ id: z.uuid(), text: z.string().max(99) });
const shared = { path: '/v1/notes', tag: 'Test' } as const;

function createNotes(): Module {
  return {
    name: 'notes',
    routes: () => [
      defineRoute({
        ...shared,
        ...{ method: 'GET', summary: 'List notes', tracking: UNTRACKED_READ },
        access: inWorkspace('deployments:read'),
        responses: { 200: z.strictObject({ notes: z.array(note) }) },
        handle: async ({ db, workspaceId }) => ({
          body: {
            notes: await db
              .selectFrom('test_notes')
              .select(['id', 'text'])
              .where('workspace_id', '=', workspaceId)
              .execute(),
          },
        }),
      }),
      defineRoute({
        ...shared,
        ...{ method: 'POST', summary: 'Write a note', tracking: { operation: 'update_listener' } },
        access: inWorkspace('deployments:update'),
        body: note.pick({ text: true }),
        responses: { 201: note },
        async handle({ db, workspaceId, body }) {
          const row = { workspace_id: workspaceId, text: body.text };
          const written = db.insertInto('test_notes').values(row).returning(['id', 'text']);
          const { id, text } = await written.executeTakeFirstOrThrow();
          return { body: { id, text }, resources: [id] };
        },
      }),
    ],
  };
}

it('a module of ten lines has the tests of every route', async () => {
  await using scratch = await createScratch();
  const number = String(readAllMigrations().length + 1).padStart(4, '0');
  const file = join(scratch.path, `${number}-notes.sql`);
  await writeFile(file, SQL);
  await using scene = await openNewRoutes({
    modules: [createNotes()],
    migrations: [pathToFileURL(file)],
  });
  const { api, a1, operations } = scene;
  const notes = operations.filter(({ path }) => path === shared.path);
  expect(notes.map(({ method }) => method)).toEqual(['GET', 'POST']);
  const { found, sent } = await findDefects(
    scene,
    notes.map(({ route }) => route),
  );
  expect(found).toEqual([]);
  expect(sent).toBeGreaterThan(20);
  const viewer = await api.addServiceKey(a1.organizationId, 'WORKSPACE_VIEWER', a1.workspaceId);
  for (const operation of notes) {
    const { status } = await send(api, await createExample(api, operation, a1), { key: viewer });
    expect(status).toBe(operation.method === 'GET' ? 200 : 403);
  }
});

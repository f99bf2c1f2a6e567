// A module of a few lines: its route is called by the roles that may, is closed to other tenants, rejects what its schemas do
// not allow, and is described, without a test of its own.
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { mount } from '../../../src/platform/api/contract/mount.ts';
import { eventStream } from '../../../src/platform/api/responses.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';
import type { Fixture, RouteFixtures } from './fixtures.ts';
import { findIdLeaks } from './foreign-callers.ts';
import { findDefects, openNewRoutes } from './new-route-checks.ts';

/** Reads a listener and streams its id, under two prefixes. */
const routes: readonly Route[] = mount(
  [
    defineRoute({
      method: 'POST',
      path: '/v2/listeners/{listener_id}/watch',
      tag: 'Test',
      summary: 'Watch a listener',
      access: inWorkspace('deployments:read'),
      tracking: { operation: 'update_listener' },
      params: z.strictObject({ listener_id: z.uuid() }),
      body: z.strictObject({
        times: z.int().min(1).max(3),
        beside: z.strictObject({ listener_id: z.uuid() }),
      }),
      responses: { 200: eventStream<readonly string[]>() },
      failures: [404],
      async handle({ db, workspaceId, params, body }) {
        const ids = [params.listener_id, body.beside.listener_id];
        for (const id of ids)
          await db
            .selectFrom('listeners')
            .select('id')
            .where('workspace_id', '=', workspaceId)
            .where('id', '=', id)
            .executeTakeFirstOrThrow(() => new DomainError('not_found', 'Listener not found'));
        return { source: Array.from({ length: body.times }, () => ids[0] ?? ''), resources: ids };
      },
      async *stream(_, source) {
        for (const [at, data] of source.entries()) yield { event: 'seen', data, id: String(at) };
      },
    }),
  ],
  { under: ['', '/host'] },
);

it('a new route has the tests of every route', { tags: ['long'] }, async () => {
  await using scene = await openNewRoutes({ routes });
  const operation = scene.operations.find(({ path }) => path === routes[0]?.path);
  expect(operation?.responses.get(200)?.types).toEqual(['text/event-stream']);
  const { found, sent } = await findDefects(scene, routes);
  expect(found).toEqual([]);
  // The checks had something to check.
  if (operation === undefined) return;
  expect((await findIdLeaks(scene, operation)).seen).toBe(1);
  expect(sent).toBeGreaterThan(100);
});

/** A note belongs to a workspace; the table is the one of the tokens of sandboxes. */
function createNotes(defect?: 'serves all' | 'serves every role' | 'waits'): readonly Route[] {
  const notes = defineRoute({
    method: 'POST',
    path: '/v1/notes/{note_id}/copies',
    tag: 'Test',
    summary: 'Copy a note',
    access: {
      ...inWorkspace('sandboxes:manage'),
      ...(defect === 'serves every role' ? { enter: inWorkspace('sandboxes:read').enter } : {}),
      ...(defect === 'serves every role' ? { confirm: inWorkspace('sandboxes:read').confirm } : {}),
    },
    tracking: { untracked: 'a test' },
    params: z.strictObject({ note_id: z.uuid() }),
    body: z.strictObject({
      beside: z
        .array(z.strictObject({ note_id: z.uuid() }))
        .min(1)
        .max(2),
      label: z.string().min(1).max(20),
    }),
    responses: { 201: z.strictObject({ copies: z.int() }) },
    failures: [404],
    async handle({ db, workspaceId, params, body }) {
      const ids = new Set([params.note_id, ...body.beside.map(({ note_id }) => note_id)]);
      if (defect === 'waits') await turn();
      for (const id of ids)
        await db
          .selectFrom('sandbox_tokens')
          .select('id')
          .where('id', '=', id)
          .$if(defect !== 'serves all', (query) => query.where('workspace_id', '=', workspaceId))
          .executeTakeFirstOrThrow(() => new DomainError('not_found', 'Note not found'));
      return { body: { copies: ids.size } };
    },
  });
  return mount([notes], { under: ['', '/host'] });
}

async function turn(): Promise<void> {
  for (let at = 0; at < 2; at += 1) await new Promise((resolve) => setImmediate(resolve));
}

const note: Omit<Fixture, 'under'> = {
  async make({ api, tenant }) {
    const row = { sandbox: 'notes', short_token: 'a note', hash: randomBytes(32), expires_at: null };
    const { id } = await api.database.owner.db
      .insertInto('sandbox_tokens')
      .values({ workspace_id: tenant.workspaceId, ...row })
      .returning('id')
      .executeTakeFirstOrThrow();
    return id;
  },
};
const fixtures: RouteFixtures = { inPaths: { note_id: note }, inBodies: { note_id: note } };

it('a route with ids of its own has them too', { tags: ['long'] }, async () => {
  const notes = createNotes();
  await using scene = await openNewRoutes({ routes: notes, fixtures });
  expect((await findDefects(scene, notes)).found).toEqual([]);
});

it.each([
  ['serves all', 'can see that it exists'],
  ['serves every role', 'WORKSPACE_VIEWER'],
  ['waits', 'waits for something else than the database'],
] as const)('a new route with a defect is found: it %s', { tags: ['long'] }, async (defect, complaint) => {
  const notes = createNotes(defect);
  await using scene = await openNewRoutes({ routes: notes, fixtures });
  expect(JSON.stringify((await findDefects(scene, notes)).found)).toContain(complaint);
});

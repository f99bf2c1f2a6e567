// A module of a few lines: its route is called by the roles that may, is closed to other tenants, rejects what its schemas do
// not allow, and is described, without a test of its own.
import { expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { mount } from '../../../src/platform/api/contract/mount.ts';
import { eventStream } from '../../../src/platform/api/responses.ts';
import { defineRoute, type Route } from '../../../src/platform/api/route.ts';
import { findIdLeaks, findLeaks } from './foreign-callers.ts';
import { createHandleGuard } from './handle-guard.ts';
import { createProber } from './prober.ts';
import { openEveryRoute } from './scene.ts';

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

it('a new route has the tests of every route', async () => {
  using guard = createHandleGuard();
  await using scene = await openEveryRoute({ routes, wrap: guard.wrap });
  const operation = scene.operations.find(({ route }) => route === routes[0]);
  expect(operation?.responses.get(200)?.types).toEqual(['text/event-stream']);
  if (operation === undefined) return;
  const prober = await createProber(scene);
  const { found, sent } = await prober.sweep(operation, 1);
  expect(found).toEqual([]);
  expect(sent).toBeGreaterThan(100);
  expect(await findLeaks(scene, operation)).toEqual([]);
  expect(await findIdLeaks(scene, operation)).toEqual({ found: [], seen: 1 });
  expect(guard.found).toEqual([]);
});

// The handle of every route calls the database and nothing else: it holds a transaction, a connection of the pool and a
// turn of its organization.
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import { defineRoute, type Handling, type Route } from '../../../src/platform/api/route.ts';
import { createHandleGuard } from './handle-guard.ts';
import { createProber } from './prober.ts';
import { createExample, openEveryRoute, send, successOf } from './scene.ts';
import { everyNth } from '../../support/run-size.ts';

describe('the handle of every route', () => {
  it('calls the database and nothing else', async () => {
    using guard = createHandleGuard();
    await using scene = await openEveryRoute({ wrap: guard.wrap });
    const { api, a1, operations } = scene;
    const { authorize } = await createProber(scene);
    for (const operation of operations) {
      const example = await createExample(api, operation, a1);
      // The last use of a key is stored beside the request, and would count as its statement.
      await api.authenticator.settle();
      const { status, text } = await send(api, example, authorize(operation));
      expect([operation.title, status, text]).toEqual([operation.title, successOf(operation), text]);
    }
    expect(guard.found).toEqual([]);
    expect(operations.length).toBeGreaterThan(30);
  });
});

/** Two turns of the event loop, so that the guard sees one of them. */
async function takeTurns(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

const rows: readonly (readonly [string, (call: Handling) => Promise<unknown>, string])[] = [
  ['waits before its first statement', takeTurns, 'waits for something else than the database'],
  [
    'waits between its statements',
    async ({ db }) => {
      await db.selectFrom('listeners').select('id').execute();
      await takeTurns();
      await db.selectFrom('listeners').select('id').execute();
    },
    'waits for something else than the database',
  ],
  [
    'calls a server',
    ({ db }) => {
      void fetch('http://127.0.0.1:1/').catch(() => undefined);
      return db.selectFrom('listeners').select('id').execute();
    },
    'calls fetch',
  ],
  [
    'opens a connection and does not wait for it',
    ({ db }) => {
      connect(1, '127.0.0.1').on('error', () => undefined);
      return db.selectFrom('listeners').select('id').execute();
    },
    'opens a connection',
  ],
];

describe('the guard finds a handle that', () => {
  everyNth(3, rows, (some, options) =>
    it.each(some)('%s', options, async (what, work, complaint) => {
      const route: Route = defineRoute({
        method: 'POST',
        path: '/waiting',
        tag: 'Test',
        summary: `a route that ${what}`,
        access: inWorkspace('deployments:create'),
        tracking: { operation: 'create_listener' },
        responses: { 204: null },
        async handle(call) {
          await work(call);
        },
      });
      using guard = createHandleGuard();
      await using scene = await openEveryRoute({ routes: [route], wrap: guard.wrap });
      const key = scene.a1.workspaceKey;
      // The first use of a key is stored beside its request, and would count as a statement of the next one.
      await scene.api.ask('GET', '/v2/listeners', { key });
      await scene.api.authenticator.settle();
      const { status } = await scene.api.ask('POST', '/waiting', { key });
      expect([status, guard.found]).toEqual([204, [`POST /waiting ${complaint}`]]);
    }),
  );
});

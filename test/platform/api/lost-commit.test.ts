import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { defaultLimits } from '../../../src/platform/api/limits.ts';
import { createApi } from '../../../src/platform/api/pipeline.ts';
import { listenerRoutes } from '../../../src/platform/control-plane/listener-routes.ts';
import { createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import { createFirstOrganization } from '../../../src/platform/management/first-organization.ts';
import { openDatabase } from '../../../src/platform/store/database.ts';
import { createApiRequest } from '../../support/api-request.ts';
import { type Cut, openDatabaseCutter } from '../../support/database-cutter.ts';
import { createTestDatabase, onePool } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';

const rows: readonly (readonly [Cut, { readonly listeners: number; readonly isSuccess: boolean }])[] = [
  ['after the commit', { listeners: 1, isSuccess: true }],
  ['before the commit', { listeners: 0, isSuccess: false }],
  ['while the commit is on its way', { listeners: 0, isSuccess: false }],
];

it.each(rows)(
  'a connection that is cut %s leaves one event, which says what became of the write',
  async (cut, wanted) => {
    await using database = await createTestDatabase();
    await using scratch = await createScratch();
    await using cutter = await openDatabaseCutter(scratch.path, String(database.connection.host));
    const connection = { ...database.connection, host: scratch.path };
    const store = openDatabase({ connection, maxConnections: 4, onError: () => undefined });
    const { createdKey: key = '' } = await store.write((trx) =>
      createFirstOrganization(trx, { name: 'One' }),
    );
    const authenticator = createAuthenticator({ now: () => Date.now() });
    const api = createApi(listenerRoutes, {
      pools: onePool(store),
      authenticator,
      log: createLog('trace', { write: () => undefined }),
      limits: defaultLimits,
    });
    const request = createApiRequest('/v2/listeners', {
      method: 'POST',
      headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ compute_type: 'k8s', compute_id: 'one', compute_config: {} }),
    });

    cutter.cut(cut);
    const response = await api(request);

    expect(response.status).toBe(503);
    await authenticator.settle();
    await cutter.deliver();
    const listeners = await database.owner.db.selectFrom('listeners').select('id').execute();
    const events = await database.owner.db
      .selectFrom('audit_events')
      .select(['operation', 'record'])
      .execute();
    expect(listeners).toHaveLength(wanted.listeners);
    expect(
      events.map(({ operation, record }) => [operation, JSON.parse(record).operation_succeeded]),
    ).toEqual([['create_listener', wanted.isSuccess]]);
    await store.close();
  },
);

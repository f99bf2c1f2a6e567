// How often a request waits for the database: what is added to every request is seen here.
import { expect, it } from 'vitest';
import { openDatabaseRelay } from '../../../bench/platform/database-relay.ts';
import { spreadOf } from '../../../bench/support/percentiles.ts';
import { createLog } from '../../../src/base/log.ts';
import { defaultLimits } from '../../../src/platform/api/limits.ts';
import { createApi } from '../../../src/platform/api/pipeline.ts';
import { listenerRoutes } from '../../../src/platform/control-plane/listener-routes.ts';
import { createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import { createFirstOrganization } from '../../../src/platform/management/first-organization.ts';
import { openDatabase } from '../../../src/platform/store/database.ts';
import { createApiRequest } from '../../support/api-request.ts';
import { createTestDatabase, onePool } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';

it('a read has two statements; a write six in three round trips, and five in two where its key was looked up in the last second', async () => {
  await using database = await createTestDatabase();
  await using scratch = await createScratch();
  using relay = await openDatabaseRelay(String(database.connection.host), `${scratch.path}/relay`);
  const connection = { ...database.connection, host: relay.host };
  const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
  const { createdKey: key = '' } = await store.write((trx) => createFirstOrganization(trx, { name: 'One' }));
  let elapsedMs = 0;
  const authenticator = createAuthenticator({ now: () => Date.now(), elapsed: () => elapsedMs });
  const log = createLog('trace', { write: () => undefined });
  const api = createApi(listenerRoutes, {
    ...{ pools: onePool(store), authenticator, log, limits: defaultLimits },
  });
  const count = async (
    ...[method, path, bodies, pauseMs]: [string, string, readonly (object | undefined)[], number]
  ) => {
    const counted: (readonly [number, number])[] = [];
    let id = '';
    for (const body of bodies) {
      const before = relay.counts();
      const response = await api(
        createApiRequest(path, {
          method,
          headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
      expect(response.status).toBeLessThan(300);
      id = JSON.parse(String(response.body)).id;
      await authenticator.settle();
      elapsedMs += pauseMs;
      const { statements, roundTrips } = relay.counts();
      counted.push([statements - before.statements, roundTrips - before.roundTrips]);
    }
    // The first request of a key also stores when it was used.
    const median = (at: 0 | 1): number => spreadOf(counted.map((one) => one[at] ?? 0)).median;
    return { id, statements: median(0), roundTrips: median(1) };
  };
  const listener = (name: string) => ({ compute_type: 'k8s', compute_id: name, compute_config: {} });
  const written = await count('POST', '/v2/listeners', ['a', 'b', 'c'].map(listener), 1000);
  expect(written).toMatchObject({ statements: 6, roundTrips: 3 });
  const repeated = await count('POST', '/v2/listeners', ['d', 'e', 'f'].map(listener), 0);
  expect(repeated).toMatchObject({ statements: 5, roundTrips: 2 });
  const read = await count('GET', `/v2/listeners/${written.id}`, [undefined, undefined, undefined], 0);
  expect(read).toMatchObject({ statements: 2, roundTrips: 2 });
  await store.close();
});

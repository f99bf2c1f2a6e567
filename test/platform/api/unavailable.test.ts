// What is said when the database is away: to the client that he may come back, to the operator what it is.
import { expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { defaultLimits } from '../../../src/platform/api/limits.ts';
import { createApi } from '../../../src/platform/api/pipeline.ts';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createAuthenticator } from '../../../src/platform/identity/authentication.ts';
import { createRoutes } from '../../../src/platform/modules.ts';
import { openDatabase } from '../../../src/platform/store/database.ts';
import { createApiRequest, textOf } from '../../support/api-request.ts';
import { onePool } from '../../support/platform-database.ts';
import { createTestWiring } from '../../support/test-wiring.ts';

it('a request without a database is a 503, and what is away is noted for the log', async () => {
  const connection = { host: '/nonexistent', user: 'a', database: 'a' };
  const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
  const lines: string[] = [];
  const api = createApi(createRoutes(createTestWiring({ canUseAuditLogs: true })), {
    pools: onePool(store),
    authenticator: createAuthenticator({ now: () => Date.now() }),
    log: createLog('trace', { write: (line) => void lines.push(line) }),
    limits: defaultLimits,
  });
  const noted: object[] = [];
  const response = await api(
    createApiRequest('/v2/listeners', {
      headers: { 'X-Api-Key': mintKey('service').text },
      note: (facts) => void noted.push(facts),
    }),
  );
  expect([response.status, response.fields?.['Retry-After']]).toEqual([503, '1']);
  expect(JSON.parse(textOf(response))).toEqual({
    detail: 'The database is not available: try again',
    code: 'unavailable',
  });
  expect(noted).toContainEqual({ cause: 'ENOENT' });
  expect(lines).toEqual([]);
  await store.close();
});

import { afterAll, beforeAll } from 'vitest';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { describeRunQueries } from './run-query-checks.ts';
import { describeTraceStore } from './trace-store-checks.ts';
import { addWorkspace } from './trace-scene.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const open = () => ({
  store: postgresTraceStore,
  database: database.store,
  addWorkspace: () => addWorkspace(database.owner.db),
});
describeTraceStore('PostgreSQL', open);
describeRunQueries('PostgreSQL', open);

import { describe, expect, it } from 'vitest';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase } from '../../support/platform-database.ts';

describe('a test database', () => {
  it('has the whole schema and no rows', async () => {
    await using database = await createTestDatabase();
    const rows = await database.owner.db.selectFrom('organizations').selectAll().execute();
    expect(rows).toEqual([]);
  });

  it('is a database of its own', async () => {
    await using one = await createTestDatabase();
    await using other = await createTestDatabase();
    await one.owner.db
      .insertInto('organizations')
      .values({ display_name: 'One', plan: 'enterprise', config: '{}' })
      .execute();
    expect(await other.owner.db.selectFrom('organizations').selectAll().execute()).toEqual([]);
  });

  it('is there on another version too', async () => {
    await using database = await createTestDatabase({ server: 'debian' });
    const { rows } = await sql<{ version: string }>`show server_version`.execute(database.store.db);
    expect(rows).toEqual([{ server_version: expect.stringMatching(/^15/) }]);
  });
});

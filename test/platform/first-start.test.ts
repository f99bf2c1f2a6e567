import { expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { warnWithoutOrganization } from '../../src/platform/first-start.ts';
import { createTestDatabase } from '../support/platform-database.ts';

it('names `init` while there is no organization, and nothing afterwards or without a database', async () => {
  await using database = await createTestDatabase();
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  await warnWithoutOrganization(database.store, log);
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    'there is no organization, so no key is valid: create the first with `sallyport platform init`',
  ]);
  await database.owner.db
    .insertInto('organizations')
    .values({ display_name: 'Acme', is_personal: false, plan: 'enterprise', config: '{}' })
    .execute();
  await warnWithoutOrganization(database.store, log);
  await database.store.close();
  await warnWithoutOrganization(database.store, log);
  expect(lines).toHaveLength(1);
});

// What an operator must know who starts a platform for the first time.
import type { Log } from '../base/log.ts';
import type { Store } from './store/database.ts';

/** Never rejects: a database that cannot be read now is reported by what needs it. */
export async function warnWithoutOrganization(
  { db }: Pick<Store, 'db'>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  const anyone = db.selectFrom('organizations').select('id').limit(1).executeTakeFirst();
  const isEmpty = await anyone.then(
    (found) => found === undefined,
    () => false,
  );
  if (isEmpty)
    log.warn('there is no organization, so no key is valid: create the first with `sallyport platform init`');
}

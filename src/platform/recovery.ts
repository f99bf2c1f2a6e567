// A key for an organization whose keys are all lost. Who may run this may read and write the database as well; what it does
// stands in the audit log all the same.
import { InputError } from '../base/input-error.ts';
import { appendEvent } from './audit/journal.ts';
import type { PlatformConfig } from './config.ts';
import { openDatabasePlace } from './operator-database.ts';
import { createKey } from './management/keys.ts';
import { type Database, openDatabase } from './store/database.ts';

export type RecoveredKey = { readonly organizationId: string; readonly text: string };

/** `organizationId` undefined: the only one that there is. */
export async function recoverKey(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  organizationId: string | undefined,
): Promise<RecoveredKey> {
  await using place = await openDatabasePlace(config);
  const store = openDatabase({ connection: place.connection, maxConnections: 1, onError: () => undefined });
  try {
    return await store.write(async (trx) => {
      const found = await findOrganization(trx, organizationId);
      const scope = { organizationId: found, kind: 'service', workspaceId: null } as const;
      const wanted = {
        user_id: null,
        role: 'ORGANIZATION_ADMIN',
        description: 'Recovered by the operator',
        expires_at: null,
      };
      const { id, text } = await createKey(trx, scope, wanted);
      await appendEvent(trx, {
        organizationId: found,
        workspaceId: undefined,
        operation: 'create_service_key',
        isSuccess: true,
        userId: undefined,
        keyId: undefined,
        request: undefined,
        status: undefined,
        resources: [id],
      });
      return { organizationId: found, text };
    });
  } finally {
    await store.close();
  }
}

async function findOrganization(db: Database, id: string | undefined): Promise<string> {
  let query = db.selectFrom('organizations').select('id').limit(2);
  if (id !== undefined) query = query.where('id', '=', id);
  const [found, another] = await query.execute();
  if (found === undefined)
    throw new InputError(
      id === undefined
        ? 'There is no organization yet: sallyport platform init makes the first'
        : 'There is no such organization',
    );
  if (another !== undefined)
    throw new InputError('There are several organizations: name one by --organization');
  return found.id;
}

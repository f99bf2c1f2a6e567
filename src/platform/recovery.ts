// Creates a key for an organization that has lost all of its keys. An operator who may run this can read and write the
// database anyway; the new key is recorded in the audit log all the same.
import { InputError } from '../base/input-error.ts';
import { appendEvent } from './audit/journal.ts';
import type { PlatformConfig } from './config.ts';
import { createKey } from './management/keys.ts';
import { openOperatorStore } from './operator-database.ts';
import type { Database } from './store/database.ts';

export type RecoveredKey = { readonly organizationId: string; readonly text: string };

/** Without `organizationId` there must be exactly one organization. */
export async function recoverKey(
  config: Pick<PlatformConfig, 'database' | 'dataDirectory'>,
  organizationId: string | undefined,
): Promise<RecoveredKey> {
  await using database = await openOperatorStore(config, 1);
  return await database.store.write(async (trx) => {
    const found = await findOrganization(trx, organizationId);
    const scope = { organizationId: found, kind: 'service', workspaceId: null } as const;
    const { id, text } = await createKey(trx, scope, {
      home_workspace_id: await findOldestWorkspace(trx, found),
      user_id: null,
      role: 'ORGANIZATION_ADMIN',
      description: 'Recovered by the operator',
      expires_at: null,
    });
    await appendEvent(trx, {
      organizationId: found,
      operation: 'create_service_key',
      isSuccess: true,
      resources: [id],
    });
    return { organizationId: found, text };
  });
}

/** The one that `init` created, unless it was deleted. */
async function findOldestWorkspace(db: Database, organizationId: string): Promise<string | null> {
  const oldest = await db
    .selectFrom('workspaces')
    .select('id')
    .where('organization_id', '=', organizationId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .forKeyShare()
    .executeTakeFirst();
  return oldest?.id ?? null;
}

async function findOrganization(db: Database, id: string | undefined): Promise<string> {
  let query = db.selectFrom('organizations').select(['id', 'display_name']).orderBy('created_at').limit(MOST);
  if (id !== undefined) query = query.where('id', '=', id);
  const all = await query.execute();
  const [found, another] = all;
  if (found === undefined)
    throw new InputError(
      id === undefined
        ? 'There is no organization yet: run sallyport platform init to create the first one'
        : 'There is no organization with this id',
    );
  if (another !== undefined)
    throw new InputError(
      ['There are several organizations: choose one with --organization', ...all.map(toLine)].join('\n'),
    );
  return found.id;
}

/** Of the organizations that a message lists. */
const MOST = 50;

function toLine({ id, display_name }: { readonly id: string; readonly display_name: string }): string {
  return `${id} ${display_name}`;
}

// The first organization of an installation, its workspace and its key, with their events in the audit log.
import { DomainError } from '../base/domain-error.ts';
import { InputError } from '../base/input-error.ts';
import type { Log } from '../base/log.ts';
import { appendEvent } from './audit/journal.ts';
import type { Operation } from './audit/operations.ts';
import type { PlatformConfig } from './config.ts';
import { parseKey } from './identity/api-key.ts';
import { type FirstOrganization, createFirstOrganization } from './management/first-organization.ts';
import { openStorage } from './storage.ts';
import type { Store } from './store/database.ts';

export type InitializationOptions = {
  readonly log: Log;
  readonly name: string;
  /** A key that was made before; without one it is made here and told once. */
  readonly key: string | undefined;
};

/** `there`: it was done before, with this very key, so that a start script may do it each time. */
export async function initialize(
  config: PlatformConfig,
  { log, name, key }: InitializationOptions,
): Promise<FirstOrganization | 'there'> {
  const storage = await openStorage(config, log);
  try {
    return await storage.store.write(async (trx) => {
      const made = await createFirstOrganization(trx, { name, key });
      const { organizationId, workspaceId, keyId } = made;
      const events: readonly (readonly [Operation, string | undefined, string])[] = [
        ['create_organization', undefined, organizationId],
        ['create_workspace', workspaceId, workspaceId],
        ['create_service_key', undefined, keyId],
      ];
      for (const [operation, workspace, resource] of events)
        await appendEvent(trx, {
          organizationId,
          workspaceId: workspace,
          operation,
          isSuccess: true,
          userId: undefined,
          keyId: undefined,
          request: undefined,
          status: undefined,
          resources: [resource],
        });
      return made;
    });
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.kind === 'conflict' && (await isKnown(storage.store, key))) return 'there';
    const hint = error.kind === 'conflict' ? ': ask for more keys by its API' : '';
    throw new InputError(`${error.message}${hint}`, { cause: error });
  } finally {
    await storage.close();
  }
}

async function isKnown({ db }: Store, key: string | undefined): Promise<boolean> {
  const hash = key === undefined ? undefined : parseKey(key)?.hash;
  if (hash === undefined) return false;
  const found = db.selectFrom('api_keys').select('id').where('hash', '=', hash);
  return (await found.executeTakeFirst()) !== undefined;
}

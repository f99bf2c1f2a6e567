// What the database and the data directory must have before an agent server runs: a master key, and the workspace whose data key
// seals the users of runs. One database is of one deployment, so that both rows are fixed.
import type { Store } from '../../store/database.ts';
import { createMasterKeys } from '../../vault/master-key-registry.ts';
import { AGENT_ORGANIZATION_ID, AGENT_WORKSPACE_ID } from '../configuration/settings.ts';

/** Several processes may start at once: what is there stays. */
export async function prepareGround(
  store: Store,
  vault: Parameters<typeof createMasterKeys>[1],
): Promise<void> {
  await createMasterKeys(store, vault);
  await store.write(async (trx) => {
    await trx
      .insertInto('organizations')
      .values({
        ...{ id: AGENT_ORGANIZATION_ID, display_name: 'Agent server', plan: 'enterprise' },
        ...{ is_personal: false, config: '{}' },
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
    await trx
      .insertInto('workspaces')
      .values({
        ...{ id: AGENT_WORKSPACE_ID, organization_id: AGENT_ORGANIZATION_ID },
        ...{ display_name: 'Agent server', tenant_handle: null },
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  });
}

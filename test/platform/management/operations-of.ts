// The events in the audit log of an organization, in order.
import type { PlatformApi } from '../../support/platform-api.ts';

/** Operation, success, ids of the affected resources. */
export type Logged = readonly [string, boolean, readonly string[]];

export async function operationsOf(api: PlatformApi, organizationId: string): Promise<readonly Logged[]> {
  const rows = await api.database.owner.db
    .selectFrom('audit_events')
    .select(['operation', 'record'])
    .where('organization_id', '=', organizationId)
    .orderBy('seq')
    .execute();
  return rows.map(({ operation, record }) => {
    const { operation_succeeded, enrichments } = JSON.parse(record);
    return [operation, operation_succeeded, enrichments.resource_ids ?? []];
  });
}

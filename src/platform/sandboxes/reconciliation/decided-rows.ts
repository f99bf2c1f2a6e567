// The rows of the boxes of a machine, with what a decision depends on, and without what is sealed: a box may have a megabyte of
// it, and every pass reads all boxes.
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import type { BoxState } from '../box-states.ts';
import type { BoxRow } from '../boxes.ts';

const DECIDED = [
  ...(['id', 'status', 'desired', 'policy_version', 'applied_version', 'rejected_version'] as const),
  ...(['token_version', 'applied_token_version'] as const),
] as const;

export type DecidedRow = Pick<BoxRow, (typeof DECIDED)[number]> & { readonly newer_profile: number | null };

/** What could not be done with a version of a profile may be possible with other secrets, or settings: it is tried now and then. */
const RETRY_MINUTES = 10;

export async function readDecided(db: Database, machineId: string): Promise<readonly DecidedRow[]> {
  const isUntried = sql`boxes.profile_tried_version is distinct from proxy_profiles.version
    or boxes.profile_tried_at < now() - make_interval(mins => ${RETRY_MINUTES})
    or exists (select from workspace_secrets
        where workspace_secrets.workspace_id = boxes.workspace_id
          and workspace_secrets.updated_at > boxes.profile_tried_at)`;
  return db
    .selectFrom('boxes')
    .leftJoin('proxy_profiles', (join) =>
      join
        .onRef('proxy_profiles.workspace_id', '=', 'boxes.workspace_id')
        .onRef('proxy_profiles.id', '=', 'boxes.proxy_profile_id'),
    )
    .select(DECIDED.map((column) => `boxes.${column}` as const))
    .select(
      sql<number | null>`case when proxy_profiles.version is distinct from boxes.profile_version
          and (${isUntried}) then proxy_profiles.version end`.as('newer_profile'),
    )
    .where('machine_id', '=', machineId)
    .execute();
}

/** The whole row; undefined where it is no longer what the step was decided for. */
export async function readUnchanged(
  db: Database,
  machineId: string,
  { id, status, desired, policy_version, token_version }: DecidedRow,
): Promise<BoxRow | undefined> {
  return db
    .selectFrom('boxes')
    .selectAll()
    .where('id', '=', id)
    .where('machine_id', '=', machineId)
    .where('status', '=', status)
    .where('desired', '=', desired)
    .where('policy_version', '=', policy_version)
    .where('token_version', '=', token_version)
    .executeTakeFirst();
}

export function toBoxState(row: DecidedRow): BoxState {
  return {
    ...{ status: row.status, desired: row.desired },
    policyVersion: row.policy_version,
    appliedVersion: row.applied_version,
    rejectedVersion: row.rejected_version,
    hasToken: row.applied_token_version >= row.token_version,
    newerProfile: row.newer_profile ?? undefined,
  };
}

// An organization as its members see it. It must not know HTTP.
import type { Database } from '../store/database.ts';
import { type Selectable, sql } from '../store/sql.ts';
import type { OrganizationRow } from '../store/tables.ts';

export type OrganizationView = Omit<Selectable<OrganizationRow>, 'config'>;

const COLUMNS = ['id', 'display_name', 'is_personal', 'plan', 'created_at', 'updated_at'] as const;

export async function readOrganization(db: Database, id: string): Promise<OrganizationView> {
  return db.selectFrom('organizations').select(COLUMNS).where('id', '=', id).executeTakeFirstOrThrow();
}

export async function renameOrganization(trx: Database, id: string, name: string): Promise<OrganizationView> {
  return trx
    .updateTable('organizations')
    .set({ display_name: name, updated_at: sql<Date>`now()` })
    .where('id', '=', id)
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
}

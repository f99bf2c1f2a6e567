// The names of all databases that this installation has made on its server, and those whose deployment is gone, for example with its
// workspace. Another installation may use the same server: what is not in this list is never dropped.
import type { Database } from '../../store/database.ts';
import { type Fixed, sql } from '../../store/sql.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly runner_databases: {
      /** Of the database, and of its role. */
      readonly name: string;
      readonly deployment_id: string;
      readonly created_at: Fixed<Date>;
    };
  }
}

/** Before it is created: a process that is killed then leaves nothing that nobody knows. */
export async function noteServerDatabase(db: Database, name: string, deploymentId: string): Promise<void> {
  await db
    .insertInto('runner_databases')
    .values({ name, deployment_id: deploymentId })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}

/** After it was dropped. */
export async function forgetServerDatabase(db: Database, name: string): Promise<void> {
  await db.deleteFrom('runner_databases').where('name', '=', name).execute();
}

/** Those of deployments that have no row any more. */
export async function readLeftoverDatabases(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from runner_databases o
    where not exists (select from deployments d where d.id = o.deployment_id)
    order by created_at limit 100`.execute(db);
  return rows.map(({ name }) => name);
}

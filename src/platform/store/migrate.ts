// Brings a database to the schema of this version, forward only. It must not know what the steps do.
import { createHash } from 'node:crypto';
import { type Client, connectOnce, type Connection } from './database.ts';
import { codeOf } from './database-error.ts';
import { installJobs } from './jobs.ts';
import type { Migration } from './migration.ts';
import { migrations } from './migrations.ts';
import { RUNTIME } from './roles.ts';

/** Any number that nobody else takes on this database. */
const LOCK = 5_271_009_001;

const APPLIED_STEPS = `
  create table if not exists schema_migrations (
    id integer primary key,
    name text not null,
    hash text not null,
    applied_at timestamptz not null default now()
  )
`;

export type MigrateOptions = {
  /** Who the platform is at run time, where that is not the owner: a role that may work as `sallyport_app`. */
  readonly runtimeUser?: string | undefined;
  readonly steps?: readonly Migration[];
};

/** By the owner of the tables, before anything else is done with the database. Several processes may at once. */
export async function migrate(
  ownerConnection: Connection,
  { runtimeUser, steps = migrations }: MigrateOptions = {},
): Promise<void> {
  await connectOnce(ownerConnection, async (client) => {
    // Whoever waits for it finds all done. It ends with the connection.
    await client.query(`select pg_advisory_lock(${LOCK})`);
    await createRuntimeRole(client, runtimeUser);
    await client.query(APPLIED_STEPS);
    const applied = await readApplied(client);
    refuseOtherHistory(applied, steps);
    for (const step of steps.slice(applied.length)) await apply(client, step);
    await installJobs(client);
  });
}

type AppliedStep = { readonly id: number; readonly name: string; readonly hash: string };

async function readApplied(client: Client): Promise<readonly AppliedStep[]> {
  const { rows } = await client.query<AppliedStep>(
    'select id, name, hash from schema_migrations order by id',
  );
  return rows;
}

function refuseOtherHistory(applied: readonly AppliedStep[], steps: readonly Migration[]): void {
  if (applied.length > steps.length)
    throw new Error(
      `The database is newer than this version: it has ${applied.length} steps of the schema, and this version knows ${steps.length}`,
    );
  for (const [index, { id, name, hash }] of applied.entries()) {
    const step = steps[index];
    if (step?.id === id && hashOf(step) === hash) continue;
    throw new Error(
      `Step ${id} of the schema (${name}) is not the one that this version knows: another program's?`,
    );
  }
}

async function apply(client: Client, step: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(step.sql);
    await client.query('insert into schema_migrations (id, name, hash) values ($1, $2, $3)', [
      step.id,
      step.name,
      hashOf(step),
    ]);
    await client.query('commit');
  } catch (cause) {
    // When the connection is lost there is nothing to undo.
    await client.query('rollback').catch(() => undefined);
    throw new Error(`Step ${step.id} of the schema (${step.name}) failed`, { cause });
  }
}

function hashOf({ sql }: Migration): string {
  return createHash('sha256').update(sql).digest('hex');
}

/** insufficient_privilege */
const MAY_NOT = '42501';

// Roles belong to the server, so another database of ours may have made it. The owner becomes a member, to work as it.
async function createRuntimeRole(client: Client, runtimeUser: string | undefined): Promise<void> {
  try {
    await client.query(`
      do $$ begin
        if not exists (select from pg_roles where rolname = '${RUNTIME}') then
          begin
            create role ${RUNTIME};
          exception when duplicate_object or unique_violation then null;
          end;
        end if;
        if not pg_has_role(current_user, '${RUNTIME}', 'member') then
          execute format('grant ${RUNTIME} to %I', current_user);
        end if;
      end $$
    `);
    await client.query(`grant usage on schema public to ${RUNTIME}`);
    if (runtimeUser !== undefined && runtimeUser !== RUNTIME)
      await client.query(`grant ${RUNTIME} to ${client.escapeIdentifier(runtimeUser)}`);
  } catch (cause) {
    if (codeOf(cause) !== MAY_NOT) throw cause;
    throw new Error(
      `The owner of the database may not make the role ${RUNTIME}. Let an administrator say: create role ${RUNTIME}; grant ${RUNTIME} to the owner`,
      { cause },
    );
  }
}

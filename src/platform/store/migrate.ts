// Migrates a database to the schema of this version, forward only.
import { createHash } from 'node:crypto';
import { type Client, connectOnce, type Connection } from './database.ts';
import { codeOf } from './database-error.ts';
import { installJobs, isJobsSchemaCurrent } from './jobs.ts';
import type { Migration } from './migration.ts';
import { RUNTIME } from './roles.ts';

/** Of the advisory lock: any number that nothing else uses on this database. */
const LOCK = 5_271_009_001;

const HISTORY = `
  create table if not exists schema_migrations (
    id integer primary key,
    name text not null,
    hash text not null,
    applied_at timestamptz not null default now()
  );
  grant select (id, name, hash) on schema_migrations to ${RUNTIME};
`;

const READ_HISTORY = 'select id, name, hash from schema_migrations order by id';

/** The code of an error that the server responded with; those of a broken connection have names such as EPIPE. */
const SQLSTATE = /^[0-9FHPX][0-9A-Z]{4}$/;

/**
 * As the runtime role, before `migrate`: whether that would change nothing. Then the owner is not needed. False also when
 * the role may not find out. Throws when the schema is that of a newer version, or the database cannot be reached.
 */
export async function isCurrent(connection: Connection, steps: readonly Migration[]): Promise<boolean> {
  try {
    return await connectOnce(connection, async (client) => {
      const { rows: applied } = await client.query<AppliedStep>(READ_HISTORY);
      refuseOtherHistory(applied, steps);
      return applied.length === steps.length && (await isJobsSchemaCurrent(client));
    });
  } catch (error) {
    if (SQLSTATE.test(String(codeOf(error)))) return false;
    throw error;
  }
}

export type MigrateOptions = {
  /** The user of the platform at run time, if that is not the owner: it is granted `sallyport_app`. */
  readonly runtimeUser?: string | undefined;
  /**
   * False: the owner runs the program too. The role `sallyport_app` of the server is of others, and is only named in what the migrations
   * grant: the owner does not become a member of it.
   */
  readonly hasRuntimeRole?: boolean;
};

/**
 * Run by the owner of the tables before anything else uses the database. Several processes may run it at once. Returns
 * the number of migrations that it applied.
 */
export async function migrate(
  ownerConnection: Connection,
  steps: readonly Migration[],
  { runtimeUser, hasRuntimeRole = true }: MigrateOptions = {},
): Promise<number> {
  return connectOnce(ownerConnection, async (client) => {
    // Released with the connection. A process that had to wait finds every migration applied.
    await client.query(`select pg_advisory_lock(${LOCK})`);
    if (hasRuntimeRole) await createRuntimeRole(client, runtimeUser);
    await client.query(HISTORY);
    const { rows: applied } = await client.query<AppliedStep>(READ_HISTORY);
    refuseOtherHistory(applied, steps);
    for (const step of steps.slice(applied.length)) await apply(client, step);
    await installJobs(client);
    return steps.length - applied.length;
  });
}

type AppliedStep = { readonly id: number; readonly name: string; readonly hash: string };

function refuseOtherHistory(applied: readonly AppliedStep[], steps: readonly Migration[]): void {
  if (applied.length > steps.length)
    throw new Error(
      `The database is newer than this version: it has ${applied.length} migrations, and this version has ${steps.length}`,
    );
  for (const [index, { id, name, hash }] of applied.entries()) {
    const step = steps[index];
    if (step?.id === id && hashOf(step) === hash) continue;
    throw new Error(
      `Migration ${id} (${name}) of the database is not the one of this version. Is this the database of another program?`,
    );
  }
}

async function apply(client: Client, { id, name, sql }: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(sql);
    const row = [id, name, hashOf({ sql })];
    await client.query('insert into schema_migrations (id, name, hash) values ($1, $2, $3)', row);
    await client.query('commit');
  } catch (cause) {
    // It fails when the connection is lost, and then there is nothing to roll back.
    await client.query('rollback').catch(() => undefined);
    throw new Error(`Migration ${id} (${name}) failed`, { cause });
  }
}

function hashOf({ sql }: Pick<Migration, 'sql'>): string {
  return createHash('sha256').update(sql).digest('hex');
}

const INSUFFICIENT_PRIVILEGE = '42501';

// Roles belong to the server, so another Sallyport database may have created it. The owner becomes a member, so that it
// can work as this role.
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
    if (codeOf(cause) !== INSUFFICIENT_PRIVILEGE) throw cause;
    throw new Error(
      `The owner of the database may not create the role ${RUNTIME}. An administrator must run: create role ${RUNTIME}; grant ${RUNTIME} to <owner>`,
      { cause },
    );
  }
}

// Creates and drops the database and the role of a deployment on the server, as the owner of the tables of the platform. Each step may be
// repeated, and any of them may have been the last one of a process that was killed.
import { type Client, connectOnce, type Connection } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';

export type DatabaseNames = { readonly database: string; readonly role: string };

/** Every name that this program gives, and none that another program would: nothing else is ever dropped. */
const NAME = /^sallyport_d_[0-9a-f]{32}$/;

export function namesOf(deploymentId: string): DatabaseNames {
  const name = `sallyport_d_${deploymentId.replaceAll('-', '').toLowerCase()}`;
  if (!NAME.test(name)) throw new Error('the id of a deployment must be a UUID');
  return { database: name, role: name };
}

/** What of it the owner of the tables may not do; the message is for the operator. */
export class NotPermitted extends Error {
  override readonly name: string = 'NotPermitted';
}

const INSUFFICIENT_PRIVILEGE = '42501';
const DUPLICATE_DATABASE = '42P04';
const UNIQUE_VIOLATION = '23505';

/**
 * Resolves when the database exists, and the role and nobody else may connect to it. The password is replaced by that of `verifier`.
 * `maxConnections`: of all connections of the role. Throws a NotPermitted.
 */
export async function createServerDatabase(
  owner: Connection,
  { database, role }: DatabaseNames,
  given: { readonly verifier: string; readonly maxConnections: number },
): Promise<void> {
  await asOwner(owner, async (client) => {
    await createRole(client, role, given);
    // Of a role that is not a superuser, because only a member may create something that the role owns.
    await client.query(`grant ${role} to current_user`);
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database]);
    // A template that nobody can connect to: a connection to the template would make this fail.
    if (rowCount === 0)
      await client.query(`create database ${database} owner ${role} template template0`).catch(unlessThere);
    await client.query(`revoke all on database ${database} from public`);
  });
}

async function createRole(
  client: Client,
  role: string,
  { verifier, maxConnections }: { readonly verifier: string; readonly maxConnections: number },
): Promise<void> {
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [role]);
  const attributes = `login nocreatedb nocreaterole connection limit ${Math.trunc(maxConnections)} password ${client.escapeLiteral(verifier)}`;
  if (rowCount !== 0) await client.query(`alter role ${role} ${attributes}`);
  else await client.query(`create role ${role} ${attributes}`);
  // The files of a large sort are not part of the database. Only a superuser may limit them, and then the role cannot undo it.
  await client.query(`alter role ${role} set temp_file_limit = '1GB'`).catch((error: unknown) => {
    if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
  });
}

/** The process that was killed had sent the statement, which the server has completed meanwhile. */
function unlessThere(error: unknown): void {
  if (![DUPLICATE_DATABASE, UNIQUE_VIOLATION].includes(codeOf(error) ?? '')) throw error;
}

/** Of those that are there. */
export async function readDatabaseSizes(
  owner: Connection,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  if (names.length === 0) return sizes;
  await asOwner(owner, async (client) => {
    const text =
      'select datname as name, pg_database_size(oid) as bytes from pg_database where datname = any($1)';
    const { rows } = await client.query<{ name: string; bytes: string }>(text, [names]);
    for (const { name, bytes } of rows) sizes.set(name, Number(bytes));
  });
  return sizes;
}

/** Resolves when neither is left, whoever was connected. */
export async function dropServerDatabase(
  owner: Connection,
  { database, role }: DatabaseNames,
): Promise<void> {
  for (const name of [database, role])
    if (!NAME.test(name)) throw new Error(`${name} is not the database or the role of a deployment`);
  await asOwner(owner, async (client) => {
    await client.query(`drop database if exists ${database} with (force)`);
    await client.query(`drop role if exists ${role}`);
  });
}

async function asOwner(owner: Connection, work: (client: Client) => Promise<void>): Promise<void> {
  try {
    await connectOnce(
      { application_name: 'sallyport runner', statement_timeout: STATEMENT_MS, ...owner },
      work,
    );
  } catch (cause) {
    if (codeOf(cause) !== INSUFFICIENT_PRIVILEGE) throw cause;
    throw new NotPermitted(
      `${String(owner.user)} may not create databases and roles for deployments (${(cause as Error).message}): an administrator must run: alter role ${String(owner.user)} createdb createrole`,
      { cause },
    );
  }
}

/** To copy the template and to write it to the disk takes long on a busy server. */
const STATEMENT_MS = 120_000;

// What code of a deployment attempts on the server of its database, through its bridge and as its role: other files, programs, databases, roles,
// sessions and channels.
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import {
  type DatabaseBridge,
  openDatabaseBridge,
} from '../../../../src/platform/runner/database-bridge/bridge.ts';
import { createConnectionBudget } from '../../../../src/platform/runner/database-bridge/connection-budget.ts';
import { createVerifier } from '../../../../src/platform/runner/databases/scram-verifier.ts';
import {
  createServerDatabase,
  dropServerDatabase,
  namesOf,
} from '../../../../src/platform/runner/databases/server-databases.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const PASSWORD = 'p4ssword';
const names = namesOf(randomUUID());
const other = namesOf(randomUUID());

let platform: TestDatabase;
let scratch: Scratch;
let bridge: DatabaseBridge;
let client: Client;

beforeAll(async () => {
  [platform, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  const given = { verifier: await createVerifier(new Secret(PASSWORD)), maxConnections: 10 };
  for (const one of [names, other]) await createServerDatabase(platform.ownerConnection, one, given);
  const { host = '', port = 5432 } = platform.connection;
  bridge = await openDatabaseBridge({
    ...{
      directory: `${scratch.path}/db`,
      server: { host, port },
      database: names.database,
      user: names.role,
    },
    ...{ connections: createConnectionBudget(10, 10), log: { warn: () => undefined } },
  });
  client = await connect();
  await client.query('create table t (x text)');
});

afterAll(async () => {
  await client?.end();
  await bridge?.close();
  for (const one of [names, other]) await dropServerDatabase(platform.ownerConnection, one);
  await platform?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

async function connect(): Promise<Client> {
  const { database, role: user } = names;
  const one = new Client({ host: `${scratch.path}/db`, database, user, password: PASSWORD });
  one.on('error', () => undefined);
  await one.connect();
  return one;
}

const statements: readonly string[] = [
  // Files and programs of the machine.
  "copy (select 'x') to program 'true'",
  "copy t from program 'cat /etc/passwd'",
  "copy t to '/tmp/sallyport-escape'",
  "copy t from '/etc/passwd'",
  "select pg_read_file('/etc/passwd')",
  "select pg_read_binary_file('postgresql.conf')",
  "select pg_ls_dir('.')",
  "select pg_stat_file('postgresql.conf')",
  'select pg_ls_logdir()',
  "select lo_import('/etc/passwd')",
  "select lo_export(0, '/tmp/sallyport-escape')",
  "create function f() returns int language c as '/tmp/x.so', 'f'",
  "create function f() returns int language internal as 'pg_backend_pid'",
  "load '/tmp/x.so'",
  'create extension dblink',
  'create extension postgres_fdw',
  'create extension file_fdw',
  'create extension adminpack',
  'create extension pg_stat_statements',
  'create extension plperlu',
  'create extension plpython3u',
  'create foreign data wrapper w handler none',
  "create tablespace s location '/tmp'",
  // Settings of the server.
  "alter system set archive_command = 'true'",
  "set session_preload_libraries = 'x'",
  'set temp_file_limit = -1',
  "set log_statement = 'none'",
  'set zero_damaged_pages = on',
  'select pg_reload_conf()',
  'select pg_rotate_logfile()',
  'select pg_switch_wal()',
  'select pg_promote()',
  "select pg_create_restore_point('x')",
  'checkpoint',
  'select * from pg_hba_file_rules',
  'select * from pg_file_settings',
  'select * from pg_config',
  // Roles, databases and sessions of others.
  'select rolpassword from pg_authid',
  'select passwd from pg_shadow',
  'create role sallyport_escape',
  'create database sallyport_escape',
  'set role sallyport_app',
  'set session authorization sallyport_app',
  `alter role ${names.role} superuser`,
  `alter role ${names.role} connection limit -1`,
  `alter role ${names.role} bypassrls`,
  `alter role ${other.role} password 'x'`,
  `grant ${other.role} to ${names.role}`,
  `grant pg_read_server_files to ${names.role}`,
  `grant pg_monitor to ${names.role}`,
  `drop database ${other.database}`,
  `alter database ${other.database} set work_mem = '1MB'`,
  `comment on database ${other.database} is 'x'`,
  `select pg_database_size('${other.database}')`,
  'create event trigger e on ddl_command_start execute function f()',
  "create subscription s connection 'host=127.0.0.1' publication p",
  "select pg_create_physical_replication_slot('x')",
  "select pg_create_logical_replication_slot('x', 'pgoutput')",
  "select pg_replication_origin_create('x')",
  'select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user limit 1',
  'select pg_cancel_backend(pid) from pg_stat_activity where usename <> current_user limit 1',
  'select pg_stat_reset()',
  "select pg_export_snapshot(), pg_backup_start('x')",
];

/** Insufficient privilege, or an extension that is not installed. */
const REFUSED = ['42501', '0A000'];

describe('the role of a deployment', () => {
  it.each(statements.map((one) => [one]))('may not: %s', async (statement) => {
    const code = await client.query(statement).then(
      () => 'done',
      (error: { code: string }) => error.code,
    );
    expect(REFUSED).toContain(code);
  });

  it('sees no statement of others, and not where the server has its files', async () => {
    await platform.owner.db.selectFrom('workspaces').select('id').execute();
    const { rows } = await client.query<{ query: string; own: boolean }>(
      'select query, usename is not distinct from current_user as own from pg_stat_activity',
    );
    const foreign = rows.filter(({ own }) => !own).map(({ query }) => query);
    expect(foreign.length).toBeGreaterThan(0);
    expect(new Set(foreign)).toEqual(new Set(['<insufficient privilege>']));
    const files = "('data_directory', 'hba_file', 'config_file', 'unix_socket_directories')";
    const settings = await client.query(`select name from pg_settings where name in ${files}`);
    expect(settings.rows).toEqual([]);
  });

  it('gets no notification of another database', async () => {
    const received: string[] = [];
    client.on('notification', ({ payload = '' }) => received.push(payload));
    await client.query('listen deployments');
    const owner = new Client(platform.ownerConnection);
    await owner.connect();
    await owner.query("notify deployments, 'of the platform'");
    await owner.end();
    await client.query("notify deployments, 'own'");
    await expect.poll(() => received).toEqual(['own']);
  });

  it('is let into no other database by its bridge', async () => {
    const { role: user } = names;
    for (const database of [other.database, 'postgres', 'template1', String(platform.connection.database)]) {
      const one = new Client({ host: `${scratch.path}/db`, database, user, password: PASSWORD });
      await expect(one.connect()).rejects.toMatchObject({ code: '28000' });
    }
  });
});

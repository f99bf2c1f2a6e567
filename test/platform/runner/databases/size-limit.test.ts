// The limit of a database on a real server: above it rows can be deleted and not inserted, and at half as much again it is closed.
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createConnectionBudget } from '../../../../src/platform/runner/database-bridge/connection-budget.ts';
import { watchDatabaseSizes } from '../../../../src/platform/runner/databases/database-sizes.ts';
import {
  type OpenDatabase,
  openDeploymentDatabase,
} from '../../../../src/platform/runner/databases/deployment-database.ts';
import {
  dropServerDatabase,
  readDatabaseSizes,
} from '../../../../src/platform/runner/databases/server-databases.ts';
import { decideSize, type SizeState } from '../../../../src/platform/runner/databases/size-limit.ts';
import { createStartTurns } from '../../../../src/platform/runner/fleet/start-turns.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import {
  createDeploymentScene,
  type Deployment,
  type DeploymentScene,
} from '../../deployments/deployment-scene.ts';

const MIB = 1024 ** 2;
const FULL = { code: '53100', constraint: 'sallyport_database_bytes' };
const patience = { timeout: 20_000 };

let scene: DeploymentScene;
let scratch: Scratch;
let deployment: Deployment;
let opened: OpenDatabase;

async function open(isMade: boolean): Promise<OpenDatabase> {
  const { store, ownerConnection: owner } = scene.database;
  const log = { warn: () => undefined, info: () => undefined };
  const sizes = watchDatabaseSizes({
    read: (names) => readDatabaseSizes(owner, names),
    log,
    intervalMs: 100,
  });
  const parts = {
    ...{ store, vault: scene.vault, owner, log, sizes, maxBytes: 16 * MIB, limitTurns: createStartTurns(2) },
    ...{ connections: createConnectionBudget(10, 10), directory: scratch.path },
  };
  const { id: deploymentId, workspaceId } = deployment;
  const found = await openDeploymentDatabase(
    parts,
    { deploymentId, workspaceId },
    { isMade, groupId: undefined },
  );
  if (found === undefined) throw new Error('the deployment is gone');
  return found;
}

async function connect(): Promise<Client> {
  const { directory: host, name: database, user, password } = opened.secrets;
  const client = new Client({ host, database, user, password: password.reveal() });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: { code?: unknown }) => String(error.code),
  );

/** 1 MiB each. */
const insert = (table: string): string =>
  `insert into ${table} select repeat(md5(n::text), 30) from generate_series(1, 1000) n`;

/** Above the limit, and not so far that it is closed; resolves with what a row is refused by. */
async function fill(client: Client, table: string): Promise<unknown> {
  const size = 'select pg_database_size(current_database()) as bytes';
  while (Number((await client.query(size)).rows[0].bytes) < 17 * MIB) await client.query(insert(table));
  const refused = Promise.withResolvers<unknown>();
  const one = `insert into ${table} values ('x')`;
  await expect
    .poll(
      () => codeOf(client.query(one).catch((error) => Promise.reject((refused.resolve(error), error)))),
      patience,
    )
    .toBe('53100');
  return refused.promise;
}

beforeAll(async () => {
  [scene, scratch] = await Promise.all([createDeploymentScene(), createScratch()]);
  deployment = await scene.addDeployment({ status: 'AWAITING_DATABASE' });
  opened = await open(false);
});

afterAll(async () => {
  await opened?.bridge.close();
  if (opened) {
    const { name: database, user: role } = opened.secrets;
    await dropServerDatabase(scene.database.ownerConnection, { database, role });
  }
  await scene?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

it.each([
  [100, 'open', 'open'],
  [101, 'open', 'full'],
  [95, 'full', 'full'],
  [95, 'open', 'open'],
  [90, 'full', 'open'],
  [150, 'full', 'full'],
  [151, 'open', 'closed'],
  [149, 'closed', 'full'],
  [90, 'closed', 'open'],
] as const satisfies readonly (readonly [number, SizeState, SizeState])[])(
  'with %i of 100 bytes, a database that was %s is %s',
  (bytes, before, after) => expect(decideSize(bytes, 100, before)).toBe(after),
);

it('above the limit no row is inserted, and space of deleted rows is used again', {
  timeout: 60_000,
}, async () => {
  const client = await connect();
  await client.query('create table t (x text); create table p (x text) partition by list (x)');
  await client.query('create table "p 1" partition of p default; create table small (x text)');
  expect(await fill(client, 't')).toMatchObject({
    ...FULL,
    message: expect.stringContaining('has more than the 16 MiB of runner.limits.database_bytes'),
  });
  expect(await codeOf(client.query('copy t from stdin'))).toBe('53100');
  // Of tables that are small, an agent server needs some to start.
  await client.query("insert into small values ('x')");
  // After a restart of the runner, too.
  await opened.bridge.close();
  opened = await open(true);
  const next = await connect();
  expect(await codeOf(next.query(insert('t')))).toBe('53100');
  await next.query("select count(*) from t; update t set x = 'y' where x = 'z'");
  await next.query('delete from t where ctid < (select max(ctid) from t)');
  await expect.poll(() => codeOf(next.query("insert into t values ('x')")), patience).toBe('done');
  await expect
    .poll(
      async () => (await next.query("select from pg_namespace where nspname = 'sallyport_limits'")).rowCount,
    )
    .toBe(0);
  await next.query('truncate t');
  await next.end();
});

it('rows for partitions are refused at their table', { timeout: 60_000 }, async () => {
  const client = await connect();
  expect(await fill(client, 'p')).toMatchObject(FULL);
  expect(await codeOf(client.query(insert('"p 1"')))).toBe('53100');
  await client.query('truncate p');
  await expect.poll(() => codeOf(client.query("insert into p values ('x')")), patience).toBe('done');
  await client.end();
});

it('code that removes what refuses its rows is cut off at half as much again', {
  timeout: 60_000,
}, async () => {
  const client = await connect();
  const cut = new AbortController();
  client.once('end', () => cut.abort());
  const statement = `drop schema if exists sallyport_limits cascade; ${insert('t')}`;
  while (!cut.signal.aborted) await client.query(statement).catch(() => undefined);
  await expect(connect()).rejects.toMatchObject({
    ...FULL,
    message: expect.stringMatching(/ has \d+ MiB, more than 1.5 times the 16 MiB of runner/),
  });
  const { ownerConnection } = scene.database;
  const administrator = new Client({ ...ownerConnection, database: opened.secrets.name });
  await administrator.connect();
  await administrator.query('drop table t');
  await administrator.end();
  const tryAgain = async (): Promise<string> => codeOf(connect().then((one) => one.end()));
  await expect.poll(tryAgain, patience).toBe('done');
});

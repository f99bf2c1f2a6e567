// A deployment that fills its database gets no connection any more, and one again when it has less.
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createConnectionBudget } from '../../../../src/platform/runner/database-bridge/connection-budget.ts';
import { watchDatabaseSizes } from '../../../../src/platform/runner/databases/database-sizes.ts';
import { openDeploymentDatabase } from '../../../../src/platform/runner/databases/deployment-database.ts';
import {
  dropServerDatabase,
  readDatabaseSizes,
} from '../../../../src/platform/runner/databases/server-databases.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import { createDeploymentScene, type DeploymentScene } from '../../deployments/deployment-scene.ts';

const MIB = 1024 ** 2;
let scene: DeploymentScene;
let scratch: Scratch;

beforeAll(async () => {
  [scene, scratch] = await Promise.all([createDeploymentScene(), createScratch()]);
});

afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

it('a database that is larger than allowed is closed until it is smaller', { timeout: 60_000 }, async () => {
  const { store, ownerConnection: owner } = scene.database;
  const { id: deploymentId, workspaceId } = await scene.addDeployment({ status: 'AWAITING_DATABASE' });
  const log = { warn: () => undefined };
  const sizes = watchDatabaseSizes({
    read: (names) => readDatabaseSizes(owner, names),
    log,
    intervalMs: 100,
  });
  const parts = {
    ...{ store, vault: scene.vault, owner, log, sizes, maxBytes: 16 * MIB },
    ...{ connections: createConnectionBudget(10, 10), directory: scratch.path },
  };
  const given = { isMade: false, groupId: undefined };
  const opened = await openDeploymentDatabase(parts, { deploymentId, workspaceId }, given);
  if (opened === undefined) throw new Error('the deployment is gone');
  const { directory: host, name: database, user, password } = opened.secrets;
  const connect = async (): Promise<Client> => {
    const client = new Client({ host, database, user, password: password.reveal() });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const first = await connect();
  const cut = new AbortController();
  first.once('end', () => cut.abort());
  await first.query('create table t (x text)');
  const insert = 'insert into t select repeat(md5(n::text), 30) from generate_series(1, 2000) n';
  while (!cut.signal.aborted) await first.query(insert).catch(() => undefined);
  const refused = /^the database of this deployment has \d+ MiB, more than the 16 MiB of runner/;
  await expect(connect()).rejects.toMatchObject({ code: '53100', message: expect.stringMatching(refused) });
  const administrator = new Client({ ...owner, database });
  await administrator.connect();
  await administrator.query('drop table t');
  await administrator.end();
  const tryAgain = async (): Promise<string> => {
    try {
      await (await connect()).end();
      return 'connected';
    } catch (error) {
      return String((error as { code?: unknown }).code);
    }
  };
  await expect.poll(tryAgain, { timeout: 20_000 }).toBe('connected');
  await opened.bridge.close();
  await dropServerDatabase(owner, { database, role: user });
});

it('what cannot be read changes nothing, and only what is watched is asked for', async () => {
  const asked: (readonly string[])[] = [];
  const warnings: unknown[] = [];
  const sizes = watchDatabaseSizes({
    async read(names) {
      asked.push(names);
      if (asked.length === 1) throw new Error('away');
      return new Map(names.map((name) => [name, 7]));
    },
    log: { warn: (...args: unknown[]) => void warnings.push(args) },
    intervalMs: 1,
  });
  const taken: number[] = [];
  const end = sizes.watch('one', (bytes) => void taken.push(bytes));
  await expect.poll(() => taken.length).toBeGreaterThan(1);
  end();
  expect([warnings.length, taken[0], asked[0]]).toEqual([1, 7, ['one']]);
});

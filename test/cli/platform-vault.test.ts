// The master key of the vault as an operator meets it: created by `init`, checked at each start, and replaced by `rewrap` while a
// platform runs, whatever happens to the processes that do it.
import { chmod, copyFile, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { createOrganization } from '../../src/platform/management/first-organization.ts';
import { connectOnce } from '../../src/platform/store/database.ts';
import { createVault } from '../../src/platform/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import {
  initPlatform,
  type PlatformOptions,
  runSallyport,
  startPlatform,
  verifyAuditLog,
} from '../support/platform-process.ts';
import { createScratch } from '../support/scratch.ts';
import { program, SpawnedProcess } from '../support/spawned-process.ts';

type Installation = PlatformOptions & { readonly database: TestDatabase; readonly masterKeyFile: string };

async function install(): Promise<Installation> {
  const [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  onTestFinished(async () => {
    await database[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });
  const dataDirectory = join(scratch.path, 'data');
  const options = { dataDirectory, database, masterKeyFile: join(dataDirectory, 'vault-master.key') };
  await initPlatform(options, mintKey('service').text);
  return options;
}

async function refusalOfStart(options: PlatformOptions): Promise<string> {
  const { code, stderr } = await runSallyport(['platform'], options);
  expect(code).toBe(2);
  return stderr;
}

const SLOW = { timeout: 120_000 };

describe('the master key file', SLOW, () => {
  it('is checked at the start, which says what to do', async () => {
    const options = await install();
    const { masterKeyFile } = options;
    const copy = `${masterKeyFile}.copy`;
    await copyFile(masterKeyFile, copy);
    await chmod(masterKeyFile, 0o644);
    expect(await refusalOfStart(options)).toContain('other users can read or change this key; run chmod 600');
    await rm(masterKeyFile);
    await symlink(copy, masterKeyFile);
    expect(await refusalOfStart(options)).toContain('is a symbolic link; name the file itself');
    await rm(masterKeyFile);
    expect(await refusalOfStart(options)).toMatch(
      /there is no master key, but this database needs the master key/,
    );
    const other = await install();
    const env = { SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE: other.masterKeyFile };
    const refused = await refusalOfStart({ ...options, env });
    expect(refused).toMatch(/is an old copy or of another installation, .* restore it from a backup/);
    expect(refused).not.toContain((await readFile(copy, 'utf8')).trim());
  });
});

describe('rewrap', SLOW, () => {
  it('by two processes, one of them killed in the middle, changes and records each data key once', {
    tags: ['long'],
  }, async () => {
    const options = await install();
    const { database, masterKeyFile } = options;
    const { store } = database;
    await using platform = startPlatform(options);
    await platform.ready;
    const vault = createVault({ masterKeyFile });
    const places = await Promise.all(
      ['One', 'Two', 'Three'].map(async (name) => {
        const { workspaceId } = await store.write((trx) => createOrganization(trx, { name }));
        return { workspaceId, purpose: 'test', name: 'TOKEN', version: 1 };
      }),
    );
    places.sort((a, b) => (a.workspaceId < b.workspaceId ? -1 : 1));
    const sealed = await Promise.all(
      places.map((place) => store.write((trx) => vault.seal(trx, place, new Secret(place.workspaceId)))),
    );

    const start = (...args: readonly string[]): SpawnedProcess => {
      const child = new SpawnedProcess(process.execPath, [program, 'platform', 'rewrap', ...args], {
        env: {
          SALLYPORT_PLATFORM_DATA_DIR: options.dataDirectory,
          DATABASE_URL: database.url,
          SALLYPORT_PLATFORM_DATABASE_OWNER_URL: database.ownerUrl,
        },
      });
      onTestFinished(() => child[Symbol.asyncDispose]());
      return child;
    };
    await connectOnce(database.ownerConnection, async (client) => {
      // The second of three: the first is done, the third is not.
      await client.query('begin');
      await client.query('select from vault_keys where workspace_id = $1 for update', [
        places[1]?.workspaceId,
      ]);
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      // By a connection of its own: within a transaction the view does not change.
      const untilWaiting = (count: number): Promise<void> =>
        connectOnce(database.ownerConnection, (watch) =>
          expect.poll(async () => (await watch.query(waiting)).rowCount, { timeout: 60_000 }).toBe(count),
        );
      const killed = start('--new-master-key');
      await untilWaiting(1);
      const other = start();
      await untilWaiting(2);
      killed.kill('SIGKILL');
      expect((await killed.exited).signal).toBe('SIGKILL');
      await client.query('commit');
      expect(await other.exited).toEqual({ code: 0, signal: null });
    });

    // The lines of the file: both keys, because backups of the database may need the one before.
    expect((await readFile(masterKeyFile, 'utf8')).trim().split('\n')).toHaveLength(2);
    const rows = await store.db.selectFrom('vault_keys').select('master_key_id').distinct().execute();
    const needed = store.db.selectFrom('vault_master_keys').select('id as master_key_id');
    expect(rows).toEqual(await needed.where('retired_at', 'is', null).execute());
    const events = await database.owner.db
      .selectFrom('audit_events')
      .select('record')
      .where('operation', '=', 'update_vault_keys')
      .execute();
    const recorded = events.flatMap(({ record }) => JSON.stringify(record).match(/[0-9a-f-]{36}/g) ?? []);
    expect(recorded.toSorted()).toEqual(places.map((place) => place.workspaceId));
    for (const [i, place] of places.entries()) {
      const opened = await vault.unsealValue(store.db, place, sealed[i] as Buffer);
      expect(opened?.reveal()).toBe(place.workspaceId);
    }
    await verifyAuditLog(options).catch((error: unknown) => {
      // The organizations are younger than an hour and may have no checkpoint yet.
      expect(String(error)).not.toContain('ended with 1');
    });
    platform.process.kill('SIGTERM');
    expect(await platform.process.exited).toEqual({ code: 0, signal: null });
  });
});

import { createPublicKey, randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openCheckpointSink } from '../../src/platform/audit/checkpoint-sink.ts';
import { writeCheckpoints } from '../../src/platform/audit/checkpointing.ts';
import { appendEvent } from '../../src/platform/audit/journal.ts';
import { openSigningKey, publicKeyFile } from '../../src/platform/audit/signing-key.ts';
import { sql } from '../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';
import { runSallyport, startPlatform } from '../support/platform-process.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import type { Finished } from '../support/spawned-process.ts';
import { entryOf } from '../platform/audit/audit-entry.ts';
import { everyNth } from '../support/run-size.ts';

let database: TestDatabase;
let scratch: Scratch;
let organizationId: string;
beforeAll(async () => {
  scratch = await createScratch();
  database = await createTestDatabase();
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});
beforeEach(async () => {
  organizationId = randomUUID();
  for (let n = 0; n < 3; n += 1)
    await database.store.write((trx) => appendEvent(trx, entryOf(organizationId)));
});

function verify(...args: readonly string[]): Promise<Finished> {
  return runSallyport(['audit', 'verify', ...args], {
    dataDirectory: scratch.path,
    database: { url: database.url, ownerUrl: database.ownerUrl },
  });
}

/** Checkpoints of all organizations in a file of their own, and the arguments that name their key. */
async function writeOwn(): Promise<{ readonly args: readonly string[]; readonly file: string }> {
  const name = randomUUID();
  const keyFile = join(scratch.path, `${name}.key`);
  const file = join(scratch.path, `${name}.jsonl`);
  await writeCheckpoints(database.store, openCheckpointSink(file), await openSigningKey(keyFile));
  return { file, args: ['--organization', organizationId, '--public-key', publicKeyFile(keyFile)] };
}

describe('sallyport audit verify', () => {
  it('exits with 0 for an intact log that was compared with its checkpoints', async () => {
    const { args, file } = await writeOwn();
    expect(await verify(...args, '--checkpoints', file)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^3 events of 1 organization, \d+ checkpoints?: intact\n$/),
      stderr: '',
    });
  });

  it('exits with 3 and the reason when it compared nothing', async () => {
    const own = ['--organization', organizationId];
    const compare = async (args: readonly string[]): Promise<unknown> => {
      const { code, stdout, stderr } = await verify(...args);
      return {
        code,
        stdout,
        reasons: stderr
          .trim()
          .split('\n')
          .map((line) => line.split(': ')[2]),
      };
    };
    const unsigned = '3 events of 1 organization, 0 checkpoints: not verified\n';
    // Nothing was ever signed, and this directory has no key.
    expect(await compare(own)).toEqual({
      code: 3,
      stdout: unsigned,
      reasons: [
        'there is no public key of the checkpoints',
        'no event was compared with a signed checkpoint',
      ],
    });
    const { args } = await writeOwn();
    // A wrong --data-dir: neither the key nor the checkpoints that the database knows of.
    expect(await compare(own)).toMatchObject({
      code: 3,
      stdout: unsigned,
      reasons: [
        'there is no public key of the checkpoints',
        '1 other key signed checkpoints that were not checked',
        'no event was compared with a signed checkpoint',
      ],
    });
    // A wrong --checkpoints, after the owner of the database has removed its list of them.
    await database.owner.write(async (trx) => {
      await sql`set local session_replication_role = replica`.execute(trx);
      await sql`delete from audit_checkpoints`.execute(trx);
    });
    const nowhere = join(scratch.path, 'nowhere', 'checkpoints.jsonl');
    expect(await compare([...args, '--checkpoints', nowhere])).toEqual({
      code: 3,
      stdout: unsigned,
      reasons: ['no event was compared with a signed checkpoint'],
    });
    // A wrong --organization.
    const unknown = randomUUID();
    expect(await compare(['--organization', unknown])).toEqual({
      code: 3,
      stdout: '0 events of 1 organization, 0 checkpoints: not verified\n',
      reasons: [`the audit log has no events of the organization ${unknown}`],
    });
  });

  it('exits with 1 for a log that was tampered with, and names the event', async () => {
    const [{ id } = { id: '' }] = await database.owner.write(async (trx) => {
      await sql`set local session_replication_role = replica`.execute(trx);
      const edit = sql<{ id: string }>`update audit_events set operation = 'login'
        where organization_id = ${organizationId} and seq = 2 returning id`;
      return (await edit.execute(trx)).rows;
    });
    const { code, stdout } = await verify('--organization', organizationId.toUpperCase());
    expect(code).toBe(1);
    expect(stdout).toContain(`edited: organization ${organizationId}, event 2 (${id}): `);
    expect(stdout).toContain('3 events of 1 organization, 0 checkpoints: tampered with, 1 finding\n');
  });

  it('exits with 1 where the database hides events by a definition, and names it', async () => {
    const { args, file } = await writeOwn();
    const set = (what: string): Promise<unknown> =>
      sql.raw(`alter table audit_events ${what} row level security`).execute(database.owner.db);
    await set('enable');
    const { code, stdout } = await verify(...args, '--checkpoints', file);
    await set('disable');
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('definition_changed: audit_events has row security'),
    ]);
  });

  it('needs only the public key to check checkpoints', async () => {
    const keyFile = join(scratch.path, 'elsewhere.key');
    const file = join(scratch.path, 'elsewhere.jsonl');
    const key = await openSigningKey(keyFile);
    expect(createPublicKey(key).type).toBe('public');
    await writeCheckpoints(database.store, openCheckpointSink(file), key);
    const args = ['--organization', organizationId, '--checkpoints', file];
    expect((await verify(...args, '--public-key', publicKeyFile(keyFile))).code).toBe(0);
    const without = await verify(...args);
    expect(without.code).toBe(1);
    expect(without.stdout).toContain('checkpoint_forged');
  });

  everyNth(
    3,
    [
      [[]],
      [['check']],
      [['verify', 'twice']],
      [['verify', '--organization', 'x']],
      [['verify', '--unknown']],
      [['verify', '--public-key', '/nowhere/key.pub']],
      [['verify', '--config', '/nowhere/config.json']],
    ],
    (some, options) =>
      it.each(some)('exits with 2 for the arguments %j', options, async (args) => {
        const { code, stderr } = await runSallyport(['audit', ...args], {
          dataDirectory: scratch.path,
          database: { url: database.url, ownerUrl: database.ownerUrl },
        });
        expect({ code, isReported: stderr !== '' }).toEqual({ code: 2, isReported: true });
      }),
  );

  it('exits with 2 when there is no database, and creates none', async () => {
    const { code, stderr } = await runSallyport(['audit', 'verify'], {
      dataDirectory: join(scratch.path, 'nothing'),
    });
    expect(code).toBe(2);
    expect(stderr).toContain('There is no database in');
  });

  it('exits with 3 when it cannot be determined, and prints no password', async () => {
    const url = 'postgresql://u:hunter2@127.0.0.1:1/nowhere';
    const { code, stderr } = await runSallyport(['audit', 'verify'], {
      dataDirectory: scratch.path,
      database: { url, ownerUrl: url },
    });
    expect(code).toBe(3);
    expect(stderr).toContain('cannot be verified');
    expect(stderr).not.toContain('hunter2');
  });

  it('reads the database of the data directory, whether a platform runs on it or not', {
    tags: ['long'],
  }, async () => {
    await using own = await createScratch();
    await chmod(own.path, 0o711);
    const options = { dataDirectory: join(own.path, 'data') };
    const init = await runSallyport(['platform', 'init'], options);
    expect(init.code).toBe(0);
    const platform = startPlatform(options);
    try {
      await platform.ready;
      const during = await runSallyport(['audit', 'verify'], options);
      // The first checkpoint is written a minute after the start, or at its end.
      expect(during.stderr).toContain('no event was compared with a signed checkpoint: there is none in ');
      expect({ code: during.code, stdout: during.stdout }).toEqual({
        code: 3,
        stdout: '3 events of 1 organization, 0 checkpoints: not verified\n',
      });
    } finally {
      platform.process.kill('SIGTERM');
      await platform.process.exited;
    }
    const after = await runSallyport(['audit', 'verify'], options);
    expect(after).toMatchObject({
      code: 0,
      stdout: '3 events of 1 organization, 1 checkpoint: intact\n',
    });
  });
});

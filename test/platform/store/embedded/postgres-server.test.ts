// @module-tag long
import { spawn } from 'node:child_process';
import { chmod, chown, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectOnce } from '../../../../src/platform/store/database.ts';
import {
  openPostgres,
  type PostgresServer,
} from '../../../../src/platform/store/embedded/postgres-server.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import { projectRoot, runToEnd } from '../../../support/spawned-process.ts';

const log = { info: () => undefined, warn: () => undefined };
const isRoot = process.getuid?.() === 0;

let scratch: Scratch;
let directory: string;
beforeEach(async () => {
  scratch = await createScratch();
  await chmod(scratch.path, 0o711);
  directory = join(scratch.path, 'data');
});
afterEach(() => scratch[Symbol.asyncDispose]());

async function open(path = directory): Promise<PostgresServer & AsyncDisposable> {
  const server = await openPostgres({ directory: path, log, isDurable: false });
  return { ...server, [Symbol.asyncDispose]: () => server.close() };
}

async function count({ ownerConnection }: PostgresServer): Promise<number> {
  return connectOnce(ownerConnection, async (client) => {
    await client.query('create table if not exists starts (at timestamptz default now())');
    await client.query('insert into starts default values');
    return (await client.query('select from starts')).rowCount ?? 0;
  });
}

describe('an embedded server', () => {
  it('is created on the first start, and its data survives a restart', async () => {
    for (const starts of [1, 2]) {
      await using server = await open();
      expect(await count(server)).toBe(starts);
    }
  });

  it('accepts connections only on its socket, with a password, in a directory that others cannot enter', async () => {
    await using server = await open();
    const settings = await connectOnce(server.ownerConnection, async (client) => {
      const { rows } = await client.query(
        `select name, setting from pg_settings where name in ('listen_addresses', 'unix_socket_directories')`,
      );
      return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
    });
    expect(settings).toEqual({ listen_addresses: '', unix_socket_directories: join(directory, 'cluster') });
    const wrong = { ...server.ownerConnection, password: 'wrong' };
    await expect(connectOnce(wrong, async () => undefined)).rejects.toThrow(/password authentication failed/);
    expect((await stat(directory)).mode & 0o777).toBe(isRoot ? 0o710 : 0o700);
    expect((await stat(join(directory, 'passwords.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, 'cluster'))).mode & 0o077).toBe(0);
  });

  it.runIf(isRoot)('does not run as root, and its account owns its files', async () => {
    await using _server = await open();
    expect((await lstat(join(directory, 'cluster'))).uid).not.toBe(0);
    expect((await lstat(join(directory, 'passwords.json'))).uid).toBe(0);
  });

  it.runIf(isRoot)('writes nothing as root where its account could create a link', async () => {
    await (await open()).close();
    const { uid, gid } = await lstat(join(directory, 'cluster'));
    expect((await lstat(directory)).uid).toBe(0);
    const createLinks =
      'for name in platform.pid passwords.json.new; do rm -f "$0/$name"; ln -s "$1" "$0/$name"; done';
    const target = await scratch.write('target', '4711\nmine\n');
    const asAccount = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups'];
    await runToEnd('setpriv', [...asAccount, 'sh', '-c', createLinks, directory, target]);
    // In its own directory the account may do anything.
    await symlink(target, join(directory, 'cluster', 'postmaster.pid'));
    await expect(open()).rejects.toThrow(/postmaster\.pid cannot be written/);
    expect(await readFile(target, 'utf8')).toBe('4711\nmine\n');
  });

  it('has locks for queries of traces that read the partitions of a year, on many connections at once', async () => {
    await using server = await open();
    const { rows } = await connectOnce(server.ownerConnection, (client) =>
      client.query(`select product from (
        select current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int as product) s`),
    );
    expect(rows[0].product).toBeGreaterThanOrEqual(64_000);
  });

  it('starts within a second once it exists', async () => {
    await (await open()).close();
    // The best of three: other tests use the processor too.
    const tookMs: number[] = [];
    for (let start = 0; start < 3; start += 1) {
      const startedMs = performance.now();
      const server = await open();
      tookMs.push(performance.now() - startedMs);
      await server.close();
    }
    console.log(`warm starts: ${tookMs.map(Math.round).join(', ')} ms`);
    expect(Math.min(...tookMs)).toBeLessThan(1000);
  });

  it('reports when it ended by itself', async () => {
    await using server = await open();
    const pid = Number.parseInt(await readFile(join(directory, 'cluster', 'postmaster.pid'), 'utf8'), 10);
    process.kill(pid, 'SIGQUIT');
    await server.ended;
  });
});

describe('a start after a crash', () => {
  it('replaces a postmaster.pid that names an unrelated process', async () => {
    const pidFile = join(directory, 'cluster', 'postmaster.pid');
    const server = await open();
    await count(server);
    const content = await readFile(pidFile, 'utf8');
    await server.close();
    // Of the same user as the server, which then cannot know that the process is not its own.
    const { uid, gid } = await stat(pidFile.replace('postmaster.pid', 'PG_VERSION'));
    const unrelated = spawn('/bin/sh', ['-c', 'read -r _'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      uid,
      gid,
    });
    await writeFile(pidFile, content.replace(/^\d+/, String(unrelated.pid)));
    await chown(pidFile, uid, gid);
    await using again = await open();
    expect(await count(again)).toBe(2);
    unrelated.stdin.end();
  });

  it('replaces a cluster that is half created', async () => {
    await (await open()).close();
    const { uid, gid } = await stat(join(directory, 'cluster'));
    await rm(join(directory, 'cluster'), { recursive: true });
    const unfinished = join(directory, 'cluster.new');
    for (const path of [unfinished, join(unfinished, 'base')]) {
      await mkdir(path);
      await chown(path, uid, gid);
    }
    await writeFile(join(directory, 'initdb-password'), 'x');
    await using server = await open();
    expect(await count(server)).toBe(1);
    await expect(stat(join(directory, 'initdb-password'))).rejects.toThrow(/ENOENT/);
  });
});

describe('the error names the reason why a directory cannot be used', () => {
  it('when another major version created it', async () => {
    await (await open()).close();
    await writeFile(join(directory, 'cluster', 'PG_VERSION'), '16\n');
    await expect(open()).rejects.toThrow(/created by PostgreSQL 16, and this is PostgreSQL 18/);
  });

  it('when its passwords are lost', async () => {
    await (await open()).close();
    await rm(join(directory, 'passwords.json'));
    await expect(open()).rejects.toThrow(/passwords\.json is missing or damaged/);
  });

  it('when it contains other files', async () => {
    await mkdir(directory);
    await writeFile(join(directory, 'letters.txt'), 'mine');
    await expect(open()).rejects.toThrow(/contains other files/);
    expect((await stat(directory)).mode & 0o777).toBe(0o755);
  });

  it('when its path is too long for a socket', async () => {
    await expect(open(join(scratch.path, 'x'.repeat(90)))).rejects.toThrow(/bytes shorter/);
  });

  it('when a part of its path is a file', async () => {
    await scratch.write('file', 'x');
    await expect(open(join(scratch.path, 'file', 'data'))).rejects.toThrow(/a part of its path is a file/);
  });

  it('when it cannot be created', async () => {
    await expect(open('/proc/sallyport/data')).rejects.toThrow(
      /it cannot be created there|permission denied/,
    );
  });

  it.runIf(isRoot)('when only root may enter a directory above it', async () => {
    await chmod(scratch.path, 0o700);
    await expect(open()).rejects.toThrow(/may not enter a directory above/);
  });

  it.runIf(isRoot).each([
    ['full', 'size=12m', /disk is full|No space left/],
    ['read-only', 'ro', /read-only/],
  ])('when its disk is %s', async (_, option, message) => {
    await mkdir(directory);
    const program = `
      import { openPostgres } from '${projectRoot}/src/platform/store/embedded/postgres-server.ts';
      const log = { info() {}, warn() {} };
      await openPostgres({ directory: '${directory}/db', log });
    `;
    const script = `mount -t tmpfs -o ${option} none '${directory}' && exec '${process.execPath}' --input-type=module`;
    const { stderr } = await runToEnd('unshare', ['-m', 'sh', '-c', script], { input: program });
    expect(stderr).toMatch(message);
  });
});

// @module-tag long
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { connectOnce } from '../../../../src/platform/store/database.ts';
import {
  openPostgres,
  type PostgresServer,
} from '../../../../src/platform/store/embedded/postgres-server.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';
import { projectRoot, SpawnedProcess } from '../../../support/spawned-process.ts';

const log = { info: () => undefined, warn: () => undefined };

let scratch: Scratch;
let directory: string;
beforeEach(async () => {
  scratch = await createScratch();
  await chmod(scratch.path, 0o711);
  directory = join(scratch.path, 'data');
});
afterEach(async () => {
  await vi.waitFor(() => expect(serversOf(directory)).toEqual([]), { timeout: 20_000 });
  await scratch[Symbol.asyncDispose]();
});

function startPlatform(): SpawnedProcess {
  return new SpawnedProcess(process.execPath, [
    join(projectRoot, 'test/support/committing-platform.ts'),
    directory,
  ]);
}

const isReady = (record: Readonly<Record<string, unknown>>): boolean => record['msg'] === 'ready';

describe.runIf(process.platform === 'linux')('a platform that is killed', () => {
  it('20 times in a row loses no acknowledged row and leaves no server behind', {
    timeout: 300_000,
  }, async () => {
    let acknowledged = 0;
    for (let round = 0; round < 20; round += 1) {
      await using platform = startPlatform();
      await platform.record(isReady);
      expect(serversOf(directory)).toHaveLength(1);
      await platform.record(({ number }) => Number(number) > acknowledged + 20);
      platform.kill('SIGKILL');
      await platform.exited;
      acknowledged = Math.max(acknowledged, ...platform.records.map(({ number }) => Number(number ?? 0)));
      // Every other time the next platform starts while the server is still shutting down.
      if (round % 2 === 0)
        await vi.waitFor(() => expect(serversOf(directory)).toEqual([]), { timeout: 20_000 });
    }
    await using server = await open();
    const { rows } = await connectOnce(server.ownerConnection, (client) =>
      client.query('select count(*)::int as count, max(number)::int as max from acknowledged'),
    );
    expect(rows[0].max).toBeGreaterThanOrEqual(acknowledged);
    expect(rows[0].count).toBe(rows[0].max);
  });

  it('together with the watchers of its server leaves a server that the next start stops first', async () => {
    await using platform = startPlatform();
    await platform.record(isReady);
    const [orphan] = serversOf(directory);
    for (const pid of watchersOf(directory)) process.kill(pid, 'SIGKILL');
    platform.kill('SIGKILL');
    await platform.exited;
    expect(serversOf(directory)).toEqual([orphan]);
    await using _server = await open();
    expect(serversOf(directory)).toHaveLength(1);
    expect(serversOf(directory)).not.toContain(orphan);
  });

  it('together with its server during a query recovers', async () => {
    await using platform = startPlatform();
    await platform.record(isReady);
    for (const pid of serversOf(directory)) process.kill(pid, 'SIGKILL');
    platform.kill('SIGKILL');
    await platform.exited;
    await using server = await open();
    const { rowCount } = await connectOnce(server.ownerConnection, (client) =>
      client.query('select from acknowledged limit 1'),
    );
    expect(rowCount).toBe(1);
  });

  it('rejects a second platform with an error that names the first', async () => {
    await using platform = startPlatform();
    await platform.record(isReady);
    await expect(open()).rejects.toThrow(new RegExp(`^Process ${platform.pid} uses .*DATABASE_URL`));
    expect(serversOf(directory)).toHaveLength(1);
  });
});

async function open(): Promise<PostgresServer & AsyncDisposable> {
  const server = await openPostgres({ directory, log });
  return { ...server, [Symbol.asyncDispose]: () => server.close() };
}

/** The running postmasters of the directory: their children have other command lines. */
function serversOf(path: string): readonly number[] {
  return processes().filter(
    (pid) => workingDirectory(pid) === join(path, 'cluster') && argumentsOf(pid).includes('-D'),
  );
}

/** The shells that hold the other end of the pipe. */
function watchersOf(path: string): readonly number[] {
  return processes().filter((pid) => {
    const args = argumentsOf(pid);
    return args[0] === '/bin/sh' && args.includes(join(path, 'cluster'));
  });
}

function processes(): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);
}

function workingDirectory(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined; // It has ended.
  }
}

function argumentsOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

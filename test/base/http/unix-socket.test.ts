// What a start finds at the path of its socket: a socket that nobody listens at is removed, and nothing else.
import { once } from 'node:events';
import { lstat, readdir, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { removeStaleSocket } from '../../../src/base/http/unix-socket.ts';
import { createScratch } from '../../support/scratch.ts';
import { leaveStaleSocket } from '../../support/stale-socket.ts';

const names = { what: 'the socket', cure: 'change listen' };

describe('at the path of a socket', () => {
  it('nothing needs to be there', async () => {
    await using scratch = await createScratch();
    await removeStaleSocket(join(scratch.path, 'api.sock'), names);
    expect(await readdir(scratch.path)).toEqual([]);
  });

  it('the socket of a killed server is removed', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'api.sock');
    await leaveStaleSocket(path);
    expect((await lstat(path)).isSocket()).toBe(true);
    await removeStaleSocket(path, names);
    expect(await readdir(scratch.path)).toEqual([]);
  });

  it('one at which a server listens stays', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'api.sock');
    const server = createServer().listen(path);
    await once(server, 'listening');
    await expect(removeStaleSocket(path, names)).rejects.toThrow(
      `another process listens at the socket ${path}: end it, or change listen`,
    );
    expect(await readdir(scratch.path)).toEqual(['api.sock']);
    server.close();
  });

  it('a file, a directory and a link stay, also a link to a stale socket', async () => {
    await using scratch = await createScratch();
    const stale = join(scratch.path, 'stale.sock');
    await leaveStaleSocket(stale);
    const link = join(scratch.path, 'link');
    await symlink(stale, link);
    for (const path of [await scratch.write('file', ''), scratch.path, link])
      await expect(removeStaleSocket(path, names)).rejects.toThrow(
        `${path} exists and is not a socket: remove it, or change listen`,
      );
    expect((await readdir(scratch.path)).toSorted()).toEqual(['file', 'link', 'stale.sock']);
  });

  it('what cannot be looked at is named', async () => {
    await using scratch = await createScratch();
    const path = join(await scratch.write('file', ''), 'api.sock');
    await expect(removeStaleSocket(path, names)).rejects.toThrow(
      `the socket ${path} cannot be created (ENOTDIR): change listen`,
    );
  });
});

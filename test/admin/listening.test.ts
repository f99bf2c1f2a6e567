import type * as Files from 'node:fs/promises';
import { mkdir, lstat, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { type AdminScene, createAdminScene, request } from './admin-scene.ts';

/** Called where a start moves a socket away. */
const hooks = vi.hoisted(
  (): { before?: (() => Promise<void>) | undefined; after?: (() => Promise<void>) | undefined } => ({}),
);
vi.mock('node:fs/promises', async (original) => {
  const actual = await original<typeof Files>();
  return {
    ...actual,
    async rename(from: string, to: string) {
      await hooks.before?.();
      await actual.rename(from, to);
      await hooks.after?.();
    },
  };
});

async function askOver(path: string): Promise<string> {
  const socket: Socket = connect({ path });
  socket.write(request('GET', '/v1/proxy_config', { more: ['Connection: close'] }));
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  await once(socket, 'close');
  return text;
}

/** A process that is killed while it listens leaves its socket behind. */
async function leaveStaleSocket(path: string, script: string): Promise<void> {
  await writeFile(
    script,
    `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.send('up'))`,
  );
  const child = fork(script);
  await once(child, 'message');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect((await lstat(path)).isSocket()).toBe(true);
}

describe('a unix socket', () => {
  it('belongs to its owner alone, serves, and goes with the server', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'admin.sock');
    const before = process.umask();
    await using scene = await createAdminScene({ listen: { path } });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(process.umask()).toBe(before);
    expect(scene.server).toMatchObject({ url: `unix:${path}`, address: path, port: 0 });
    expect(await askOver(path)).toContain('200 OK');
    await scene.server.close(0);
    await expect(lstat(path)).rejects.toThrow('ENOENT');
  });

  it('that a killed process left is replaced', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'admin.sock');
    await leaveStaleSocket(path, join(scratch.path, 'listener.cjs'));
    await using _ = await createAdminScene({ listen: { path } });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await askOver(path)).toContain('200 OK');
  });

  it('at which another process listens stays with it', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'admin.sock');
    const other = createServer().listen(path);
    await once(other, 'listening');
    await expect(createAdminScene({ listen: { path } })).rejects.toThrow(
      /another process listens .*admin\.sock/,
    );
    expect((await lstat(path)).isSocket()).toBe(true);
    other.close();
  });

  it.each([
    ['before', /another process listens .*admin\.sock/],
    ['after', /admin\.sock, which is in use/],
  ] as const)(
    'that another start took %s this one moved the old one away stays his',
    async (when, message) => {
      await using scratch = await createScratch();
      const path = join(scratch.path, 'admin.sock');
      await leaveStaleSocket(path, join(scratch.path, 'listener.cjs'));
      let other: AdminScene | undefined;
      hooks[when] = async () => {
        hooks[when] = undefined;
        other = await createAdminScene({ listen: { path } });
      };
      await expect(createAdminScene({ listen: { path } })).rejects.toThrow(message);
      expect(await askOver(path)).toContain('200 OK');
      expect((await readdir(scratch.path)).toSorted()).toEqual(['admin.sock', 'listener.cjs']);
      await other?.[Symbol.asyncDispose]();
    },
  );

  it('does not replace a file that is not a socket', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('file', 'kept');
    const directory = join(scratch.path, 'directory');
    const link = join(scratch.path, 'link');
    await mkdir(directory);
    await symlink(join(scratch.path, 'elsewhere'), link);
    for (const path of [file, directory, link]) {
      await expect(createAdminScene({ listen: { path } })).rejects.toThrow(
        `${path} exists and is not a socket`,
      );
      expect((await lstat(path)).isSocket()).toBe(false);
    }
  });

  it.each([
    ['in a directory that is not there', (path: string) => join(path, 'no', 'admin.sock'), /admin\.listen/],
    ['under a file', (path: string) => join(path, 'file', 'admin.sock'), /admin\.listen/],
    [
      'with a path that the kernel would cut',
      (path: string) => join(path, 'x'.repeat(100)),
      /over 103 bytes/,
    ],
  ])('%s cannot be made', async (_, at, message) => {
    await using scratch = await createScratch();
    await scratch.write('file', '');
    await expect(createAdminScene({ listen: { path: at(scratch.path) } })).rejects.toThrow(message);
  });
});

describe('a port', () => {
  it('is reported as a URL', async () => {
    await using scene = await createAdminScene();
    expect(scene.server).toMatchObject({ url: `http://127.0.0.1:${scene.port}`, address: '127.0.0.1' });
  });

  it('that is in use stops the start with the setting to change', async () => {
    await using scene = await createAdminScene();
    const second = createAdminScene({ listen: { host: '127.0.0.1', port: scene.port } });
    await expect(second).rejects.toThrow(
      `the admin API cannot listen at 127.0.0.1:${scene.port}, which is in use: end what listens there, or change admin.listen or SALLYPORT_ADMIN_LISTEN`,
    );
  });

  it('of an address that is not here stops the start', async () => {
    const start = createAdminScene({ listen: { host: '192.0.2.1', port: 0 } });
    await expect(start).rejects.toThrow(/192\.0\.2\.1:0 \(EADDRNOTAVAIL\): change admin\.listen/);
  });
});

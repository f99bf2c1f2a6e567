// The state directory of an older version, which had all files at its top.
import { chmod, mkdir, readFile, readdir, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareStateDirectory } from '../../../src/sidecar/state/state-directory.ts';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

function storeIn(directory: string): SealedStateStore {
  return new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
}

/** A directory that an older version left, with the state of one sandbox. */
async function createOldState(): Promise<Scratch> {
  const scratch = await createScratch();
  await scratch.write('ca.pem', 'certificate');
  await scratch.write('ca.key', 'key');
  await scratch.write('admin-token', 'token');
  const store = storeIn(scratch.path);
  await store.readAll();
  await store.write('box', 'kept');
  await store.close();
  await chmod(scratch.path, 0o700);
  return scratch;
}

async function filesIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1)).toSorted();
}

const MOVED = [
  'public/ca.pem',
  'secret/admin-token',
  'secret/ca.key',
  'secret/sandboxes/box.sealed',
  'secret/state.key',
  'secret/state.lock',
];

describe('the files of an older version', () => {
  it('keeps the files that the operator names by their path', async () => {
    await using scratch = await createOldState();
    const { path } = scratch;
    const configured = ['ca.pem', 'ca.key', 'admin-token'].map((name) => relative('.', join(path, name)));
    expect(await prepareStateDirectory(path, configured)).toEqual(['state.key', 'sandboxes', 'state.lock']);
    expect(await filesIn(path)).toEqual([
      'admin-token',
      'ca.key',
      'ca.pem',
      ...MOVED.filter((file) => /box|state/.test(file)),
    ]);
    expect(await prepareStateDirectory(path, configured)).toEqual([]);
  });

  it('are moved into their parts, as they are, and what was stored is found there', async () => {
    await using state = await createOldState();
    const moved = await prepareStateDirectory(state.path);
    expect(moved.toSorted()).toEqual([
      'admin-token',
      'ca.key',
      'ca.pem',
      'sandboxes',
      'state.key',
      'state.lock',
    ]);
    expect(await filesIn(state.path)).toEqual(MOVED);
    expect(await readFile(join(state.path, 'public', 'ca.pem'), 'utf8')).toBe('certificate');
    expect((await stat(join(state.path, 'secret', 'ca.key'))).mode & 0o777).toBe(0o600);
    // What else the operator keeps there stays out of the reach of others.
    expect((await stat(state.path)).mode & 0o777).toBe(0o700);
    const store = storeIn(join(state.path, 'secret'));
    expect(await store.readAll()).toEqual(new Map([['box', 'kept']]));
    await store.close();
    expect(await prepareStateDirectory(state.path)).toEqual([]);
  });

  // The lock is moved last.
  it.each(MOVED.filter((file) => file !== 'secret/state.lock'))(
    'are moved by the next start if the first one ended after %s',
    async (file) => {
      await using state = await createOldState();
      const name = file.split('/')[1] ?? '';
      const to = join(state.path, dirname(file).split('/')[0] ?? '');
      await mkdir(to);
      await rename(join(state.path, name), join(to, name));
      await prepareStateDirectory(state.path);
      expect(await filesIn(state.path)).toEqual(MOVED);
    },
  );

  it('stay where they are while a process uses them', async () => {
    await using state = await createOldState();
    const before = await filesIn(state.path);
    const store = storeIn(state.path);
    await store.readAll();
    // Another process: the lock of this one would not keep it out.
    const { runToEnd } = await import('../../support/spawned-process.ts');
    const module = new URL('../../../src/sidecar/state/state-directory.ts', import.meta.url).pathname;
    const script = `import(${JSON.stringify(module)}).then((m) => m.prepareStateDirectory(${JSON.stringify(state.path)})).catch((e) => console.log(e.name, e.message))`;
    const { stdout } = await runToEnd(process.execPath, ['-e', script]);
    expect(stdout).toBe(
      `Error ${state.path}: another process (pid ${process.pid}) uses this state. Stop it, or set another state_dir.\n`,
    );
    expect(await filesIn(state.path)).toEqual(before);
    await store.close();
  });

  it('are not moved over others, and both are named', async () => {
    await using state = await createOldState();
    await mkdir(join(state.path, 'secret'), { mode: 0o700 });
    await writeFile(join(state.path, 'secret', 'ca.key'), 'the key in use');
    await expect(prepareStateDirectory(state.path)).rejects.toThrow(
      `${state.path}/ca.key: ${state.path}/secret/ca.key exists too. Keep the one that is in use`,
    );
    expect(await readFile(join(state.path, 'secret', 'ca.key'), 'utf8')).toBe('the key in use');
    expect(await readFile(join(state.path, 'ca.key'), 'utf8')).toBe('key');
  });

  it('that are links are named and left', async () => {
    await using scratch = await createScratch();
    await symlink('mounted/ca.key', join(scratch.path, 'ca.key'));
    await expect(prepareStateDirectory(scratch.path)).rejects.toThrow(
      `${scratch.path}/ca.key: a symbolic link, which is not moved. Move it to ${scratch.path}/secret/ca.key`,
    );
  });
});

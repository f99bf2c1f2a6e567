// What is made before the first box: the snapshot that the engine then finds, and nothing where boxes cannot be isolated.
import { existsSync } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Capabilities } from '../../src/box-host/bubblewrap/capabilities.ts';
import { lockDirectory } from '../../src/box-host/directory-lock.ts';
import { describePrepared, prepareMachine } from '../../src/box-host/preparation.ts';
import { SnapshotStore } from '../../src/box-host/snapshots/snapshot-store.ts';
import { createScratch } from '../support/scratch.ts';

const able: Capabilities = {
  ...{ privilege: 'root', bubblewrap: '0.8.0', obstacles: [], storage: 'loop', warnings: [] },
  limits: { version: 'v2', missing: [] },
};
const obstacle = 'bwrap is not in /usr/bin: install the Debian package bubblewrap';
const detect = async (): Promise<Capabilities> => able;

describe('the preparation of a machine', () => {
  it('makes the base once, also after one that was cut off', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'box-host');
    const snapshots = join(directory, 'bubblewrap', 'snapshots');
    await mkdir(join(snapshots, '.importing-half', 'root'), { recursive: true, mode: 0o700 });
    expect((await prepareMachine(directory, detect)).kind).toBe('isolated');
    const made = await stat(join(snapshots, 'base', 'snapshot.json'));
    expect((await prepareMachine(directory, detect)).kind).toBe('isolated');
    expect((await stat(join(snapshots, 'base', 'snapshot.json'))).mtimeMs).toBe(made.mtimeMs);
    expect(await readdir(snapshots)).toEqual(['base']);
    const store = await SnapshotStore.open(snapshots);
    expect((await store.find('base'))?.hostUsr?.hidden).toBeInstanceOf(Array);
  });

  it('leaves a directory alone that a box host uses', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'box-host');
    await mkdir(directory, { mode: 0o700 });
    using _ = await lockDirectory(directory);
    const prepared = await prepareMachine(directory, detect);
    expect([prepared, existsSync(join(directory, 'bubblewrap'))]).toEqual([{ kind: 'in_use' }, false]);
    expect(describePrepared(prepared, 'auto').join()).toContain('A box host runs already');
  });

  it.each([
    ['auto', 'Sandboxes will be attached'],
    ['bubblewrap', 'No sandbox can be started'],
  ] as const)(
    'makes nothing where boxes cannot be isolated, and %s says what to do in one line',
    async (wanted, text) => {
      await using scratch = await createScratch();
      const directory = join(scratch.path, 'box-host');
      const prepared = await prepareMachine(directory, async () => ({ ...able, obstacles: [obstacle] }));
      const lines = describePrepared(prepared, wanted);
      expect([lines.length, existsSync(directory)]).toEqual([1, false]);
      expect(lines[0]).toContain(text);
      expect(lines[0]).toContain(obstacle);
    },
  );

  it('says what is held', () => {
    const missing = [{ limit: 'pids', reason: 'no group' }] as const;
    const found = {
      ...able,
      storage: 'tmpfs',
      limits: { version: 'none', missing },
      warnings: ['a warning'],
    } as const;
    expect(describePrepared({ kind: 'isolated', found }, 'auto')).toEqual([
      'Sandboxes will be isolated by bubblewrap 0.8.0, and their base is made.',
      '  limits: not all of them are held',
      '  storage: held, in memory',
      '  a warning',
    ]);
  });
});

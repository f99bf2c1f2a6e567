// Sources as files of a directory: whole or not at all.
import { createHash } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { openSourceStore } from '../../../src/platform/deployments/source-store.ts';
import { createScratch } from '../../support/scratch.ts';

async function* pieces(...all: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const one of all) yield Buffer.from(one);
}

const PREFIX = 'workspace/deployment';

async function filesOf(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => one.name);
}

describe('the sources of a machine', () => {
  it('are written, read and removed', async () => {
    await using scratch = await createScratch();
    const store = openSourceStore({ directory: scratch.path, machineId: 'machine' });
    const written = await store.write(PREFIX, pieces('one ', 'two'));
    const sha256 = createHash('sha256').update('one two').digest('hex');
    expect(written).toEqual({
      path: expect.stringMatching(/^workspace\/deployment\/[0-9a-f-]{36}$/),
      size: 7,
      sha256,
    });
    expect(await text(await store.read(written.path))).toBe('one two');
    expect(store.machineId).toBe('machine');
    expect(await Array.fromAsync(store.list(0))).toEqual([written.path]);
    expect(await Array.fromAsync(store.list(60_000))).toEqual([]);
    await store.remove(written.path);
    await store.remove(written.path);
    expect(await filesOf(scratch.path)).toEqual([]);
    await expect(text(await store.read(written.path))).rejects.toThrow(/ENOENT/);
  });

  it('leave nothing when their content breaks off', async () => {
    await using scratch = await createScratch();
    const store = openSourceStore({ directory: scratch.path, machineId: 'machine' });
    async function* broken() {
      yield* pieces('one');
      throw new Error('the client left');
    }
    await expect(store.write(PREFIX, broken())).rejects.toThrow('the client left');
    expect(await filesOf(scratch.path)).toEqual([]);
  });

  it('list what a killed process has left on its way', async () => {
    await using scratch = await createScratch();
    const store = openSourceStore({ directory: scratch.path, machineId: 'machine' });
    await mkdir(join(scratch.path, 'incoming'));
    await writeFile(join(scratch.path, 'incoming', 'half'), 'x');
    expect(await Array.fromAsync(store.list(0))).toEqual(['incoming/half']);
  });

  it('are none where nothing was ever written', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'absent');
    const store = openSourceStore({ directory, machineId: 'machine' });
    expect(await Array.fromAsync(store.list(0))).toEqual([]);
  });
});

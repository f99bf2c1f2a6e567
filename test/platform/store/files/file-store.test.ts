// Files of a directory and objects of a bucket: whole or not at all.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openFileStore } from '../../../../src/platform/store/files/file-store.ts';
import { openS3Server, s3Credentials } from '../../../support/s3-server.ts';
import { createScratch } from '../../../support/scratch.ts';

async function* pieces(...all: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const one of all) yield Buffer.from(one);
}

const PREFIX = 'workspace/deployment';

async function filesOf(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => one.name);
}

describe('the files of a machine', () => {
  it('are written, read and removed', async () => {
    await using scratch = await createScratch();
    const store = openFileStore({ directory: scratch.path });
    const written = await store.write(PREFIX, pieces('one ', 'two'));
    const sha256 = createHash('sha256').update('one two').digest('hex');
    expect(written).toEqual({
      path: expect.stringMatching(/^workspace\/deployment\/[0-9a-f-]{36}$/),
      size: 7,
      sha256,
    });
    expect(await text(await store.read(written.path))).toBe('one two');
    expect(await Array.fromAsync(store.list(0))).toEqual([written.path]);
    expect(await Array.fromAsync(store.list(60_000))).toEqual([]);
    await store.remove(written.path);
    await store.remove(written.path);
    expect(await filesOf(scratch.path)).toEqual([]);
    await expect(text(await store.read(written.path))).rejects.toThrow(/ENOENT/);
  });

  it('leave nothing when their content breaks off', async () => {
    await using scratch = await createScratch();
    const store = openFileStore({ directory: scratch.path });
    async function* broken() {
      yield* pieces('one');
      throw new Error('the client left');
    }
    await expect(store.write(PREFIX, broken())).rejects.toThrow('the client left');
    expect(await filesOf(scratch.path)).toEqual([]);
  });

  it('list what a killed process has left on its way, and no file of somebody else', async () => {
    await using scratch = await createScratch();
    const store = openFileStore({ directory: scratch.path });
    await mkdir(join(scratch.path, 'incoming'));
    const half = `incoming/${randomUUID()}`;
    for (const file of [half, 'notes.txt', 'incoming/notes.txt'])
      await writeFile(join(scratch.path, file), 'x');
    expect(await Array.fromAsync(store.list(0))).toEqual([half]);
  });

  it('are none where nothing was ever written', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'absent');
    const store = openFileStore({ directory });
    expect(await Array.fromAsync(store.list(0))).toEqual([]);
  });
});

describe('the files of a bucket', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it('are written, read, listed and removed by every machine', async () => {
    for (const [name, value] of Object.entries(s3Credentials)) vi.stubEnv(name, value);
    await using scratch = await createScratch();
    await using s3 = await openS3Server();
    const bucket = `s3://sources/of/us?endpoint=${encodeURIComponent(s3.endpoint)}`;
    const store = openFileStore({ directory: scratch.path, bucket });
    const other = openFileStore({ directory: join(scratch.path, 'b'), bucket });
    const written = await store.write(PREFIX, pieces('one ', 'two'));
    expect(written).toMatchObject({ size: 7, path: expect.stringMatching(/^workspace\/deployment\//) });
    expect([...s3.objects.keys()]).toEqual([`/sources/of/us/${written.path}`]);
    // Nothing of what went there stays on this machine.
    expect(await filesOf(scratch.path)).toEqual([]);
    expect(await text(await other.read(written.path))).toBe('one two');
    const second = await other.write(PREFIX, pieces('three'));
    expect((await Array.fromAsync(store.list(0))).toSorted()).toEqual([written.path, second.path].toSorted());
    await other.remove(written.path);
    await other.remove(written.path);
    await expect(store.read(written.path)).rejects.toMatchObject({ name: 'NoSuchKey' });
    expect(await Array.fromAsync(store.list(0))).toEqual([second.path]);
  });

  it('are nowhere when their content breaks off', async () => {
    await using scratch = await createScratch();
    const place = { directory: scratch.path, bucket: 's3://b?endpoint=http://127.0.0.1:1' };
    async function* broken() {
      yield* pieces('one');
      throw new Error('the client left');
    }
    await expect(openFileStore(place).write(PREFIX, broken())).rejects.toThrow('the client left');
    expect(await filesOf(scratch.path)).toEqual([]);
  });
});

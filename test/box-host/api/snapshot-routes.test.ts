// Snapshots over the socket of the box host, as the platform asks for them: what is imported, what is refused, and what is left
// of an import that ended in the middle.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SnapshotStore } from '../../../src/box-host/snapshots/snapshot-store.ts';
import type { RuntimeSnapshots } from '../../../src/platform/runtime/snapshot-contract.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';
import { type BoxHostScene, createBoxHostScene } from '../box-host-scene.ts';
import { archive, inPieces } from '../../support/archive-bytes.ts';

let scene: BoxHostScene;
let scratch: Scratch;
let snapshots: RuntimeSnapshots;
let store: SnapshotStore;
const { signal } = new AbortController();

beforeAll(async () => {
  scratch = await createScratch();
  store = await SnapshotStore.open(join(scratch.path, 'snapshots'));
  scene = await createBoxHostScene({
    createEngine: async (_, { createAttached }) => ({ ...createAttached(), snapshots: store }),
  });
  ({ snapshots } = scene.runtime);
  await mkdir(join(scratch.path, 'allowed', 'tools', 'bin'), { recursive: true });
  await writeFile(join(scratch.path, 'allowed', 'tools', 'bin', 'tool'), 'twelve bytes');
  await mkdir(join(scratch.path, 'elsewhere', 'below'), { recursive: true });
  await writeFile(join(scratch.path, 'elsewhere', 'below', 'secret'), 'x');
  await symlink('../elsewhere', join(scratch.path, 'allowed', 'link'));
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await scratch[Symbol.asyncDispose]();
});

const at = (...names: string[]): string => join(scratch.path, ...names);
const small = archive([{ name: 'etc/motd', content: 'hello' }]);
const everything = { maxBytes: 1_000_000, signal };

/** What is left: the names in the directory of the snapshots. */
const left = (): Promise<readonly string[]> => readdir(at('snapshots'));

describe('a directory', () => {
  const from = (directory: string, maxBytes = 1_000_000) => ({
    directory,
    within: [at('allowed')],
    maxBytes,
  });

  it('is imported once, whoever asks again', async () => {
    const id = randomUUID();
    const source = from(at('allowed', 'tools'));
    const both = [0, 1].map(() => snapshots.importDirectory(id, source, signal));
    expect(await Promise.all(both)).toEqual(Array(2).fill({ bytes: 12, entries: 2 }));
    expect(await snapshots.importDirectory(id, source, signal)).toEqual({ bytes: 12, entries: 2 });
    expect(await snapshots.list()).toEqual([{ id, ageMs: expect.any(Number) }]);
    await snapshots.remove(id);
    expect(await left()).toEqual([]);
    await snapshots.remove(id);
  });

  it.each([
    ['outside of those that are allowed', ['elsewhere'], 1_000_000, /not below/],
    ['whose name begins as an allowed one does', ['allowed-too'], 1_000_000, /no directory/],
    ['behind a link that leads outside', ['allowed', 'link', 'below'], 1_000_000, /not below/],
    ['that is a link', ['allowed', 'link'], 1_000_000, /no directory/],
    ['that is not there', ['allowed', 'none'], 1_000_000, /no directory/],
    ['that is too large', ['allowed', 'tools'], 11, /more than 11 bytes/],
  ])('%s is refused, and nothing is left', async (_, path, maxBytes, message) => {
    const asked = snapshots.importDirectory(randomUUID(), from(at(...path), maxBytes), signal);
    await expect(asked).rejects.toMatchObject({
      kind: 'invalid_snapshot',
      message: expect.stringMatching(message),
    });
    expect(await left()).toEqual([]);
  });
});

describe('an archive', () => {
  it('is imported as it arrives', async () => {
    const id = randomUUID();
    expect(await snapshots.importArchive(id, inPieces(gzipSync(small), 7), everything)).toEqual({
      ...{ bytes: 5, entries: 1 },
    });
    expect(await store.find(id)).toMatchObject({ id, bytes: 5 });
    await snapshots.remove(id);
  });

  it.each([
    ['that is no tar', Buffer.alloc(5_000, 'x'), 1_000_000, /archive/i],
    ['with a device', archive([{ name: 'null', type: '3' }]), 1_000_000, /device node/],
    ['with a path outside', archive([{ name: '../etc/x', content: 'x' }]), 1_000_000, /outside/],
    ['that is too large', small, 4, /more than 4 bytes/],
    [
      'that is too large by far',
      archive([{ name: 'a', content: Buffer.alloc(4_000_000) }]),
      4,
      /more than 4/,
    ],
  ])('%s is refused, and nothing is left', async (_, bytes, maxBytes, message) => {
    const asked = snapshots.importArchive(randomUUID(), inPieces(bytes, 64 * 1024), { maxBytes, signal });
    await expect(asked).rejects.toMatchObject({
      kind: 'invalid_snapshot',
      message: expect.stringMatching(message),
    });
    expect(await left()).toEqual([]);
  });

  it('whose sender leaves in the middle is not kept, and the error is that of the sender', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      // All of the file, and no end of the archive.
      yield small.subarray(0, 1024);
      while ((await left()).length === 0) yield Buffer.alloc(0);
      throw new Error('the client has left');
    }
    const asked = snapshots.importArchive(randomUUID(), broken(), everything);
    await expect(asked).rejects.toThrow('the client has left');
    await expect.poll(left).toEqual([]);
    expect(await snapshots.list()).toEqual([]);
  });
});

it('a snapshot that a box lies over stays, and the platform gets the reason', async () => {
  const id = randomUUID();
  await snapshots.importArchive(id, inPieces(small), everything);
  store.hold(id);
  await expect(snapshots.remove(id)).rejects.toMatchObject({
    kind: 'invalid_snapshot',
    message: expect.stringContaining('is used: remove its boxes first'),
  });
  expect(await left()).toEqual([id]);
  store.release(id);
  await snapshots.remove(id);
  expect(await left()).toEqual([]);
});

it('a machine whose boxes have no files has no snapshots', async () => {
  await using attached = await createBoxHostScene();
  const { snapshots: none } = attached.runtime;
  await expect(none.list()).rejects.toMatchObject({ kind: 'not_supported' });
  await expect(none.importArchive(randomUUID(), inPieces(small), everything)).rejects.toMatchObject({
    kind: 'not_supported',
  });
});

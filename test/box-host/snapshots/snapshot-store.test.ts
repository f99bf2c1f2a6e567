import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { SnapshotStore } from '../../../src/box-host/snapshots/snapshot-store.ts';
import { createScratch } from '../../support/scratch.ts';
import { archive, type ArchiveEntry, inPieces, paxEntry } from '../../support/archive-bytes.ts';

async function createStore() {
  const scratch = await createScratch();
  const store = await SnapshotStore.open(join(scratch.path, 'snapshots'));
  return {
    store,
    directory: join(scratch.path, 'snapshots'),
    path: scratch.path,
    importEntries: (entries: readonly ArchiveEntry[]) => store.importTar('one', inPieces(archive(entries))),
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

const small: readonly ArchiveEntry[] = [
  { name: './', type: '5' },
  { name: './usr/bin/', type: '5', mode: 0o755 },
  { name: './usr/bin/tool', mode: 0o755, content: '#!/bin/sh\n' },
  { name: './bin', type: '2', target: 'usr/bin' },
  { name: './etc/motd', content: 'hello' },
  { name: './usr/bin/again', type: '1', target: './usr/bin/tool' },
];

describe('an archive', () => {
  it.each([
    ['plain', (bytes: Buffer) => bytes],
    ['gzip', (bytes: Buffer) => gzipSync(bytes)],
    ['zstd', (bytes: Buffer) => zstdCompressSync(bytes)],
  ])('is imported (%s)', async (_, compress) => {
    await using made = await createStore();
    const snapshot = await made.store.importTar('one', inPieces(compress(archive(small))));
    const at = (path: string) => join(snapshot.root, path);
    expect(await readFile(at('usr/bin/tool'), 'utf8')).toBe('#!/bin/sh\n');
    expect(await readlink(at('bin'))).toBe('usr/bin');
    expect(await readFile(at('etc/motd'), 'utf8')).toBe('hello');
    expect((await stat(at('usr/bin/again'))).ino).toBe((await stat(at('usr/bin/tool'))).ino);
    expect(snapshot).toMatchObject({ id: 'one', entries: 6, bytes: 15 });
    expect(await made.store.find('one')).toEqual(snapshot);
    expect(await made.store.list()).toEqual([snapshot]);
  });

  it('is imported in pieces of one byte', async () => {
    await using made = await createStore();
    const pieces = inPieces(gzipSync(archive(small)), 1);
    expect((await made.store.importTar('one', pieces)).entries).toBe(6);
  });

  it('gives the user of a box what its owner could do, and no setuid bit', async () => {
    await using made = await createStore();
    const { root } = await made.importEntries([
      { name: 'tool', mode: 0o6755 },
      { name: 'secret', mode: 0o600 },
      { name: 'closed', type: '5', mode: 0o1700 },
    ]);
    const modeOf = async (name: string) => ((await lstat(join(root, name))).mode & 0o7777).toString(8);
    expect([await modeOf('tool'), await modeOf('secret'), await modeOf('closed')]).toEqual([
      '777',
      '666',
      '777',
    ]);
  });

  it('keeps the times of files', async () => {
    await using made = await createStore();
    const { root } = await made.importEntries([{ name: 'file' }]);
    expect((await stat(join(root, 'file'))).mtimeMs).toBe(1_700_000_000_000);
  });

  it.each([0, 3, 512, 1024])('whose sender fails after %d bytes leaves nothing', async (sent) => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield archive([{ name: 'a', content: 'x' }]).subarray(0, sent);
      throw new Error('the sender has left');
    }
    await using made = await createStore();
    await expect(made.store.importTar('one', broken())).rejects.toThrow('the sender has left');
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('may name a file twice: the second replaces the first', async () => {
    await using made = await createStore();
    const { root } = await made.importEntries([
      { name: 'file', content: 'first' },
      { name: 'file', content: '2' },
    ]);
    expect(await readFile(join(root, 'file'), 'utf8')).toBe('2');
  });
});

/** What is refused, with the words that say why. */
const refused: readonly (readonly [title: string, entries: readonly ArchiveEntry[], reason: RegExp])[] = [
  ['an absolute path', [{ name: '/etc/passwd' }], /is absolute/],
  ['a path that climbs', [{ name: '../escaped' }], /leads outside/],
  ['a path that climbs in the middle', [{ name: 'a/../../escaped' }], /leads outside/],
  ['a long path that climbs', [paxEntry({ path: '../escaped' }), { name: 'good' }], /leads outside/],
  ['a link that climbs', [{ name: 'a', type: '2', target: '../../etc/passwd' }], /link that leads outside/],
  ['a link without a target', [{ name: 'a', type: '2' }], /invalid target/],
  [
    'a file through a link',
    [{ name: 'a', type: '2', target: '/tmp' }, { name: 'a/escaped' }],
    /below an entry that is no directory/,
  ],
  [
    'a directory in the place of a link',
    [{ name: 'a', type: '2', target: '/tmp' }, { name: 'a', type: '5' }, { name: 'a/escaped' }],
    /below an entry that is no directory/,
  ],
  [
    'a link in the place of a directory',
    [{ name: 'a', type: '5' }, { name: 'a', type: '2', target: '/tmp' }, { name: 'a/escaped' }],
    /was a directory before/,
  ],
  ['a file below a file', [{ name: 'a' }, { name: 'a/b' }], /below an entry that is no directory/],
  ['a hard link outside', [{ name: 'a', type: '1', target: '../../../etc/passwd' }], /leads outside/],
  ['a hard link to an absolute path', [{ name: 'a', type: '1', target: '/etc/passwd' }], /is absolute/],
  ['a hard link to nothing', [{ name: 'a', type: '1', target: 'b' }], /hard link to something/],
  [
    'a hard link to a link',
    [
      { name: 'a', type: '2', target: '/etc/passwd' },
      { name: 'b', type: '1', target: 'a' },
    ],
    /hard link to something/,
  ],
  [
    'a hard link through a link',
    [
      { name: 'a', type: '2', target: '/etc' },
      { name: 'b', type: '1', target: 'a/passwd' },
    ],
    /hard link to something/,
  ],
  [
    'a hard link to a directory',
    [
      { name: 'a', type: '5' },
      { name: 'b', type: '1', target: 'a' },
    ],
    /hard link to something/,
  ],
  ['a character device', [{ name: 'dev/null', type: '3' }], /device node/],
  ['a block device', [{ name: 'dev/sda', type: '4' }], /device node/],
  ['a named pipe', [{ name: 'pipe', type: '6' }], /named pipe/],
  ['a kind of its own', [{ name: 'a', type: 'Z' }], /of a kind/],
  ['a sparse file', [{ name: 'a', type: 'S' }], /of a kind/],
  // tar-stream would wait for ever.
  ['a size that is no number', [paxEntry({ size: 'x' }), { name: 'a' }], /size of an entry is not valid/],
  ['a negative size', [paxEntry({ size: '-5' }), { name: 'a' }], /size of an entry is not valid/],
  ['a file as the root', [{ name: './', type: '2', target: '/' }], /is the root/],
  ['nothing', [], /is empty/],
];

describe('an archive is refused for', () => {
  it.each(refused)('%s, and nothing is written', async (_, entries, reason) => {
    await using made = await createStore();
    await expect(made.importEntries(entries)).rejects.toThrow(reason);
    await expect(made.importEntries(entries)).rejects.toHaveProperty('name', 'InputError');
    expect(await readdir(made.directory)).toEqual([]);
    expect(await readdir(made.path)).toEqual(['snapshots']);
  });

  it.each([
    ['no archive', Buffer.from('this is no archive at all'.repeat(100))],
    ['an archive that ends early', archive(small).subarray(0, 1500)],
    ['a gzip that ends early', gzipSync(archive(small)).subarray(0, 100)],
    ['a gzip that is damaged', corrupt(gzipSync(archive(small)))],
    ['a zstd that is damaged', corrupt(zstdCompressSync(archive(small)))],
  ])('%s', async (_, bytes) => {
    await using made = await createStore();
    await expect(made.store.importTar('one', inPieces(bytes))).rejects.toThrow(/no tar .* or is damaged/);
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('more bytes than allowed, before they are all written', async () => {
    await using made = await createStore();
    const entries = [{ name: 'a', content: Buffer.alloc(200_000) }];
    const limits = { maxBytes: 100_000, maxEntries: 10 };
    await expect(made.store.importTar('one', inPieces(archive(entries)), limits)).rejects.toThrow(
      /more than 100000 bytes/,
    );
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('more entries than allowed', async () => {
    await using made = await createStore();
    const entries = Array.from({ length: 11 }, (_, index) => ({ name: `file-${index}` }));
    const limits = { maxBytes: 100_000, maxEntries: 10 };
    await expect(made.store.importTar('one', inPieces(archive(entries)), limits)).rejects.toThrow(
      /more than 10 entries/,
    );
  });

  it('more directories than entries are allowed, which short paths imply', async () => {
    await using made = await createStore();
    const limits = { maxBytes: 100_000, maxEntries: 10 };
    const deep = inPieces(archive([{ name: `${'d/'.repeat(20)}file` }]));
    await expect(made.store.importTar('one', deep, limits)).rejects.toThrow(/more than 10 entries/);
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('a bomb, long before it is unpacked', async () => {
    await using made = await createStore();
    const bomb = zstdCompressSync(archive([{ name: 'a', content: Buffer.alloc(80 * 1024 * 1024) }]));
    await expect(made.store.importTar('one', inPieces(bomb))).rejects.toThrow(/more than 200 times/);
    expect(await readdir(made.directory)).toEqual([]);
  });
});

function corrupt(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.fill(0xa5, 20, 60);
  return copy;
}

describe('the store', () => {
  it('removes what an import left that was killed', async () => {
    await using made = await createStore();
    await mkdir(join(made.directory, '.importing-left', 'root'), { recursive: true });
    await SnapshotStore.open(made.directory);
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('refuses an id that exists', async () => {
    await using made = await createStore();
    await made.importEntries(small);
    await expect(made.importEntries(small)).rejects.toThrow(/exists already/);
  });

  it.each(['', '..', 'a/b', '.importing-x', 'A', 'a'.repeat(65)])('refuses the id %j', async (id) => {
    await using made = await createStore();
    await expect(made.store.importTar(id, inPieces(archive(small)))).rejects.toThrow(/id of a snapshot/);
  });

  it('removes a snapshot, and one that is gone', async () => {
    await using made = await createStore();
    await made.importEntries(small);
    await made.store.remove('one');
    await made.store.remove('one');
    expect(await readdir(made.directory)).toEqual([]);
  });

  it('reports a damaged manifest', async () => {
    await using made = await createStore();
    await made.importEntries(small);
    await writeFile(join(made.directory, 'one', 'snapshot.json'), '{');
    await expect(made.store.find('one')).rejects.toThrow(/is damaged/);
  });
});

describe('a directory', () => {
  it('is imported with its links as links', async () => {
    await using made = await createStore();
    const source = join(made.path, 'source');
    await mkdir(join(source, 'a'), { recursive: true });
    await writeFile(join(source, 'a', 'file'), 'content');
    await symlink('/etc/passwd', join(source, 'a', 'link'));
    const { root } = await made.store.importDirectory('one', source);
    expect(await readFile(join(root, 'a/file'), 'utf8')).toBe('content');
    expect(await readlink(join(root, 'a/link'))).toBe('/etc/passwd');
  });

  it('is refused for a link that climbs', async () => {
    await using made = await createStore();
    const source = join(made.path, 'source');
    await mkdir(source);
    await symlink('../../etc', join(source, 'link'));
    await expect(made.store.importDirectory('one', source)).rejects.toThrow(/leads outside/);
  });

  it('is refused for a named pipe, without waiting for its writer', async () => {
    await using made = await createStore();
    const source = join(made.path, 'source');
    await mkdir(source);
    await once(spawn('mkfifo', [join(source, 'pipe')]), 'exit');
    await expect(made.store.importDirectory('one', source)).rejects.toThrow(/neither a file/);
  });

  it.each(['gone', 'file', 'link'])('is refused when it is no directory (%s)', async (name) => {
    await using made = await createStore();
    await writeFile(join(made.path, 'file'), '');
    await symlink('snapshots', join(made.path, 'link'));
    await expect(made.store.importDirectory('one', join(made.path, name))).rejects.toThrow(/no directory/);
  });
});

describe('the snapshot of this machine', () => {
  it('has links into /usr and an /etc of its own', async () => {
    await using made = await createStore();
    const { root, hostUsr } = await made.store.createBase();
    expect(await readlink(join(root, 'bin'))).toBe('usr/bin');
    expect(await readdir(join(root, 'usr'))).toEqual([]);
    expect(await readdir(join(root, 'etc'))).not.toContain('shadow');
    for (const { path } of hostUsr?.hidden ?? []) expect(path).toMatch(/^\/usr\//);
  });
});

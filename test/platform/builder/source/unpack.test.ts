import { lstat, mkdir, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { unpackSource } from '../../../../src/platform/builder/source/unpack.ts';
import { archive, type ArchiveEntry, inPieces, paxEntry, withField } from '../../../support/archive-bytes.ts';
import { createScratch } from '../../../support/scratch.ts';

const pack = (...entries: readonly ArchiveEntry[]): Buffer => gzipSync(archive(entries));
const file = (name: string, content = ''): ArchiveEntry => ({ name, content });
const link = (name: string, target: string): ArchiveEntry => ({ name, type: '2', target });
const hardLink = (name: string, target: string): ArchiveEntry => ({ name, type: '1', target });
const directory = (name: string): ArchiveEntry => ({ name, type: '5' });

const limits = { maxBytes: 100_000, maxEntries: 20 };

/** `outside` lies beside the directory that is written. */
async function createPlace() {
  const scratch = await createScratch();
  await mkdir(join(scratch.path, 'outside'));
  await scratch.write('outside/canary', 'alive');
  const directory = join(scratch.path, 'source');
  return {
    directory,
    unpack: (bytes: Uint8Array) => unpackSource(inPieces(bytes), directory, { limits }),
    async outside() {
      const names = await readdir(scratch.path, { recursive: true });
      const canary = await lstat(join(scratch.path, 'outside/canary'));
      return [...names.filter((name) => !name.startsWith('source')), canary.nlink, canary.size];
    },
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
  };
}

describe('a source is unpacked', () => {
  it('with directories, files, links and hard links', async () => {
    await using place = await createPlace();
    const unpacked = await place.unpack(
      pack(
        directory('./'),
        { ...directory('src/'), mode: 0o1700 },
        file('src/graph.ts', 'export {}'),
        directory('src/'),
        { ...file('bin/tool', '#!/bin/sh'), mode: 0o6751 },
        link('latest', 'src/../src/graph.ts'),
        hardLink('copy.ts', './src/graph.ts'),
        paxEntry({ path: `${'long-name/'.repeat(9)}name` }),
        file('short'),
        { name: 'L', type: 'L', content: `${'n'.repeat(150)}\0` },
        file('short'),
      ),
    );
    const at = (name: string): string => join(place.directory, name);
    const modeOf = async (name: string) => ((await lstat(at(name))).mode & 0o7777).toString(8);
    expect(unpacked).toEqual({ bytes: 18, entries: 9 });
    expect(await readFile(at('latest'), 'utf8')).toBe('export {}');
    expect(await readlink(at('latest'))).toBe('src/../src/graph.ts');
    expect((await stat(at('copy.ts'))).ino).toBe((await stat(at('src/graph.ts'))).ino);
    expect(await modeOf('src')).toBe('755');
    expect(await modeOf('src/graph.ts')).toBe('644');
    expect(await modeOf('bin/tool')).toBe('755');
    expect(await readdir(place.directory)).toContain('n'.repeat(150));
    expect((await stat(at(`${'long-name/'.repeat(9)}name`))).isFile()).toBe(true);
  });

  it('from gzip in several members, as parallel compressors write it', async () => {
    await using place = await createPlace();
    const bytes = archive([file('a', 'x'.repeat(2000))]);
    const unpacked = await place.unpack(
      Buffer.concat([gzipSync(bytes.subarray(0, 700)), gzipSync(bytes.subarray(700))]),
    );
    expect(unpacked).toEqual({ bytes: 2000, entries: 1 });
  });

  it('although the times of its files are none', async () => {
    await using place = await createPlace();
    const bytes = withField(archive([file('a')]), 136, `\x80${'\x7f'.repeat(11)}`);
    expect(await place.unpack(gzipSync(bytes))).toEqual({ bytes: 0, entries: 1 });
  });
});

it.runIf(process.getuid?.() === 0)('all of it belongs to the user who will build it', async () => {
  await using place = await createPlace();
  const bytes = pack(file('d/a'), link('b', 'd/a'), hardLink('c', 'd/a'));
  const owner = { uid: 61_234, gid: 61_235 };
  await unpackSource(inPieces(bytes), place.directory, { owner });
  for (const name of ['.', 'd', 'd/a', 'b', 'c'])
    expect(await lstat(join(place.directory, name))).toMatchObject(owner);
});

/** What is refused, with the words that say why. */
const hostile: readonly (readonly [title: string, archive: Buffer, reason: string])[] = [
  ['an absolute path', pack(file('/etc/passwd')), 'is absolute'],
  ['an absolute path of PAX', pack(paxEntry({ path: '/etc/passwd' }), file('a')), 'is absolute'],
  ['an absolute path of GNU', pack({ name: 'L', type: 'L', content: '/etc/x' }, file('a')), 'is absolute'],
  ['an absolute directory', pack(directory('/outside')), 'is absolute'],
  ['a path that climbs', pack(file('../outside/new')), 'leads outside'],
  ['a path that climbs in the middle', pack(file('a/../../outside/new')), 'leads outside'],
  ['a path that climbs and stays', pack(file('a/../b')), 'leads outside'],
  ['a directory that climbs', pack(directory('../outside/new')), 'leads outside'],
  ['a path of PAX that climbs', pack(paxEntry({ path: '../outside/new' }), file('a')), 'leads outside'],
  ['a path of GNU that climbs', pack({ name: 'L', type: 'L', content: '../x' }, file('a')), 'leads outside'],
  ['a link that climbs', pack(link('a', '../outside')), 'link that leads outside'],
  ['a link deeper down that climbs', pack(link('d/e/a', '../../../outside')), 'link that leads outside'],
  [
    'a link of PAX that climbs',
    pack(paxEntry({ linkpath: '../outside' }), link('a', 'b')),
    'link that leads outside',
  ],
  ['a link to an absolute path', pack(link('a', '/etc/passwd')), 'link to an absolute path'],
  ['a link to the root of the machine', pack(link('a', '/')), 'link to an absolute path'],
  ['a link without a target', pack(link('a', '')), 'invalid target'],
  [
    'a link with an endless target',
    pack(paxEntry({ linkpath: 'a/'.repeat(2100) }), link('a', 'b')),
    'invalid target',
  ],
  [
    'links that climb together',
    pack(directory('d/e'), link('d/e/in', '..'), link('out', 'd/e/in/../..')),
    'leads outside',
  ],
  ['links in a circle', pack(link('a', 'b'), link('b', 'a')), 'more than 40 others'],
  ['a link to itself', pack(link('a', 'a')), 'more than 40 others'],
  ['the root as a link', pack(link('./', 'outside')), 'is the root'],
  ['the root as a file', pack({ name: 'x', type: '0' }, paxEntry({ path: '.' }), file('a')), 'is the root'],
  ['a file through a link', pack(link('a', 'b'), file('a/new')), 'below an entry that is no directory'],
  [
    'a directory through a link',
    pack(link('a', 'b'), directory('a/new')),
    'below an entry that is no directory',
  ],
  ['a link through a link', pack(link('a', 'b'), link('a/new', 'c')), 'below an entry that is no directory'],
  ['a file below a file', pack(file('a'), file('a/b')), 'below an entry that is no directory'],
  ['a file in the place of a link', pack(link('a', 'b'), file('a')), 'was a link before'],
  ['a link in the place of a file', pack(file('a'), link('a', 'b')), 'was a file before'],
  ['a directory in the place of a link', pack(link('a', 'b'), directory('a')), 'was a link before'],
  ['a link in the place of a directory', pack(directory('a'), link('a', 'b')), 'was a directory before'],
  [
    'a link in the place of an implied directory',
    pack(file('a/b'), link('a', 'b')),
    'was a directory before',
  ],
  ['a file twice', pack(file('a', '1'), file('a', '2')), 'was a file before'],
  ['a file twice by two spellings', pack(file('d/a', '1'), file('./d//a', '2')), 'was a file before'],
  ['a link twice', pack(link('a', 'b'), link('a', 'c')), 'was a link before'],
  ['files that differ by case', pack(file('Graph.ts'), file('graph.ts')), 'differs from "Graph.ts" by case'],
  ['directories that differ by case', pack(file('A/x'), link('a', 'b')), 'differs from "A" by case'],
  ['names that differ by composition', pack(file('\u00e9'), file('e\u0301')), 'by case'],
  ['a hard link that climbs', pack(hardLink('a', '../outside/canary')), 'leads outside'],
  ['a hard link to an absolute path', pack(hardLink('a', '/etc/passwd')), 'is absolute'],
  ['a hard link to nothing', pack(hardLink('a', 'b')), 'no earlier file'],
  ['a hard link to a later file', pack(hardLink('a', 'b'), file('b')), 'no earlier file'],
  ['a hard link to a link', pack(link('a', 'b'), file('b'), hardLink('c', 'a')), 'no earlier file'],
  ['a hard link through a link', pack(file('d/f'), link('a', 'd'), hardLink('c', 'a/f')), 'no earlier file'],
  ['a hard link to a directory', pack(directory('d'), hardLink('c', 'd')), 'no earlier file'],
  ['a character device', pack({ name: 'null', type: '3' }), 'device node'],
  ['a block device', pack({ name: 'sda', type: '4' }), 'device node'],
  ['a named pipe', pack({ name: 'pipe', type: '6' }), 'named pipe'],
  ['a kind of its own', pack({ name: 'a', type: 'Z' }), 'of a kind'],
  ['a sparse file of GNU', pack({ name: 'a', type: 'S' }), 'of a kind'],
  ['a sparse file of PAX', pack(paxEntry({ 'GNU.sparse.name': '../x' }), file('a')), 'sparse file'],
  ['a part of several volumes', pack({ name: 'a', type: 'M' }), 'of a kind'],
  ['a NUL in a name', pack(paxEntry({ path: 'a\0/../../b' }), file('a')), 'leads outside'],
  ['a NUL at the end of a name', pack(paxEntry({ path: 'a.ts\0.txt' }), file('a')), 'contains a NUL'],
  ['a NUL in a link', pack(paxEntry({ linkpath: 'a\0b' }), link('a', 'b')), 'invalid target'],
  ['a name that is not UTF-8', gzipSync(withField(archive([file('a')]), 0, '\xff\xfe')), 'not UTF-8'],
  ['a name of 256 bytes', pack(paxEntry({ path: 'n'.repeat(256) }), file('a')), 'more than 255 bytes'],
  [
    'a path of 129 directories',
    pack(paxEntry({ path: 'd/'.repeat(129) + 'f' }), file('a')),
    'more than 128 directories',
  ],
  [
    'a path of 4,096 bytes',
    pack(paxEntry({ path: `${'n'.repeat(250)}/`.repeat(17) }), file('a')),
    '4095 bytes',
  ],
  ['more entries', pack(...Array.from({ length: 21 }, (_, at) => file(`f${at}`))), 'more than 20 entries'],
  ['more links', pack(...Array.from({ length: 21 }, (_, at) => link(`l${at}`, 'f'))), 'more than 20 entries'],
  ['more directories, which a path implies', pack(file(`${'d/'.repeat(21)}f`)), 'more than 20 entries'],
  [
    'the same directory again and again',
    pack(...Array.from({ length: 21 }, () => directory('d'))),
    '20 entries',
  ],
  [
    'more bytes',
    pack(file('a', 'x'.repeat(60_000)), file('b', 'x'.repeat(60_000))),
    'more than 100000 bytes',
  ],
  [
    'more bytes in heads alone',
    pack(...Array.from({ length: 40 }, () => paxEntry({ c: 'x'.repeat(9_999) })), file('a')),
    'more than 151200 bytes',
  ],
  ['a bomb', pack({ name: 'a', content: Buffer.alloc(2_000_000) }), 'more than'],
  ['a size that is no number', pack(paxEntry({ size: 'x' }), file('a')), 'size of an entry'],
  ['a negative size', gzipSync(withField(archive([file('a')]), 124, '\xff'.repeat(12))), 'size of an entry'],
  ['a size beyond the end', pack({ name: 'a', content: 'x', size: 90_000 }), 'ends within an entry'],
  [
    'a gzip that ends early',
    pack(file('a', 'x'.repeat(5000))).subarray(0, -9),
    'damaged: unexpected end of file',
  ],
  [
    'a gzip with another checksum',
    corrupt(pack(file('a', 'x'.repeat(5000)))),
    'is damaged: incorrect data check',
  ],
  ['bytes behind the gzip', Buffer.concat([pack(file('a')), Buffer.from('more')]), 'is damaged'],
  [
    'zeros behind the gzip',
    Buffer.concat([pack(file('a')), Buffer.alloc(10), pack(file('b'))]),
    'bytes behind its end',
  ],
  ['two archives', Buffer.concat([pack(file('a')), pack(file('../b'))]), 'something follows its end'],
  [
    'text behind the archive',
    gzipSync(Buffer.concat([archive([file('a')]), Buffer.alloc(512, 'x')])),
    'something follows',
  ],
  ['no end', gzipSync(archive([file('a')]).subarray(0, 512)), 'it has no end'],
  ['no tar', gzipSync(Buffer.from('this is no archive at all'.repeat(100))), 'another checksum'],
  ['a ZIP', Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(100)]), 'not compressed by gzip'],
  ['a plain tar', archive([file('a')]), 'not compressed by gzip'],
  ['a tar of zstd', zstdCompressSync(archive([file('a')])), 'not compressed by gzip'],
  ['no byte', Buffer.alloc(0), 'not compressed by gzip'],
  ['no entry', pack(), 'is empty'],
];

function corrupt(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt32LE(0, copy.length - 8);
  return copy;
}

describe('an archive is refused for', () => {
  it.each(hostile)('%s', async (_, bytes, reason) => {
    await using place = await createPlace();
    const before = await place.outside();
    const unpacked = place.unpack(bytes);
    await expect(unpacked).rejects.toThrow(reason);
    await expect(unpacked).rejects.toHaveProperty('name', 'InputError');
    expect(await place.outside()).toEqual(before);
  });
});

it('no archive is unpacked over something that exists', async () => {
  await using place = await createPlace();
  await mkdir(place.directory);
  await expect(place.unpack(pack(file('a')))).rejects.toThrow('EEXIST');
});

it('a source that fails is an error of its own', async () => {
  await using place = await createPlace();
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield pack(file('a')).subarray(0, 30);
    throw new Error('the disk has failed');
  }
  await expect(unpackSource(broken(), place.directory)).rejects.toThrow('the disk has failed');
});

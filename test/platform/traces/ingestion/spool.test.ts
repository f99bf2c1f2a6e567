import { open, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeLeftSpools, Spool } from '../../../../src/platform/traces/ingestion/spool.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

let scratch: Scratch;
beforeEach(async () => {
  scratch = await createScratch();
});
afterEach(() => scratch[Symbol.asyncDispose]());

const toText = async (pieces: AsyncIterable<Uint8Array>): Promise<string> =>
  Buffer.concat(await Array.fromAsync(pieces, (piece) => Buffer.from(piece))).toString();

/** The files of this process that are open and have no name. */
async function unnamedFiles(): Promise<readonly string[]> {
  const numbers = await readdir('/proc/self/fd');
  const paths = await Promise.all(numbers.map((one) => readlink(`/proc/self/fd/${one}`).catch(() => '')));
  return paths.filter((path) => path.includes(scratch.path) && path.endsWith('(deleted)'));
}

describe('a spool', () => {
  it('gives back slices of what was appended, more than once', async () => {
    const spool = new Spool(`${scratch.path}/below/spool`);
    await spool.append([Buffer.from('first'), Buffer.from('second')]);
    const from = spool.size;
    const large = 'x'.repeat(200_000);
    await spool.append([Buffer.from(large)]);
    expect(await toText(spool.slice(5, 6).read())).toBe('second');
    for (const _ of [1, 2]) expect(await toText(spool.slice(from, large.length).read())).toBe(large);
    spool.close();
  });

  it('has no name, and is for this process alone', async () => {
    const spool = new Spool(`${scratch.path}/spool`);
    expect(await unnamedFiles()).toEqual([]);
    await spool.append([Buffer.from('secret')]);
    expect([await readdir(`${scratch.path}/spool`), await unnamedFiles()]).toMatchObject([[], { length: 1 }]);
    expect((await stat(`${scratch.path}/spool`)).mode & 0o777).toBe(0o700);
    spool.close();
    await expect.poll(unnamedFiles).toEqual([]);
  });

  it('says that it is unavailable for a while where the disk is full', async () => {
    // A device on which every write fails as on a full disk.
    const spool = new Spool(scratch.path, () => open('/dev/full', 'r+'));
    const appended = spool.append([Buffer.from('x')]);
    await expect(appended).rejects.toMatchObject({ kind: 'unavailable', retryMs: 10_000 });
    spool.close();
  });

  it('rejects with an error of its own where the directory cannot be used', async () => {
    await writeFile(`${scratch.path}/file`, '');
    await expect(new Spool(`${scratch.path}/file`).append([Buffer.from('x')])).rejects.toThrow(
      /EEXIST|ENOTDIR/,
    );
    expect(await readFile(`${scratch.path}/file`, 'utf8')).toBe('');
  });
});

describe('files that killed processes left', () => {
  it('are removed, and nothing else', async () => {
    await removeLeftSpools(`${scratch.path}/nowhere`);
    for (const name of ['a.spool', 'b.txt']) await writeFile(`${scratch.path}/${name}`, '');
    await removeLeftSpools(scratch.path);
    expect(await readdir(scratch.path)).toEqual(['b.txt']);
  });
});

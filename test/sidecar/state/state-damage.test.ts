// What stops the start: state that is damaged, foreign, truncated or sealed with another key. And what does not: the
// temporary file of an interrupted write.
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { maxStateFileBytes } from '../../../src/sidecar/state/state-files.ts';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { createScratch } from '../../support/scratch.ts';
import { projectRoot, runToEnd } from '../../support/spawned-process.ts';

const text = randomBytes(32).toString('base64');
const start = (directory: string, key: string = text): SealedStateStore =>
  new SealedStateStore({ directory, key: { text: key, from: 'THE_VARIABLE' } });

/** State of two sandboxes, a and b. */
async function sealTwo(directory: string): Promise<string> {
  const store = start(directory);
  await store.write('a', 'state of a');
  await store.write('b', 'state of b');
  await store.close();
  return join(directory, 'sandboxes');
}

async function flip(file: string, at: number): Promise<void> {
  const bytes = await readFile(file);
  const place = at < 0 ? bytes.length + at : at;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  await writeFile(file, bytes);
}

const OTHERS_DECRYPT =
  'the key decrypts other files, so these are damaged, truncated or copies of another file';

type Damage = (folder: string) => Promise<unknown>;
const damages: readonly (readonly [string, Damage, string])[] = [
  [
    'a bit of the text',
    (folder) => flip(join(folder, 'a.sealed'), -20),
    `a.sealed cannot be decrypted; ${OTHERS_DECRYPT}`,
  ],
  ['a bit of the tag', (folder) => flip(join(folder, 'a.sealed'), -1), 'a.sealed cannot be decrypted'],
  ['a bit of the nonce', (folder) => flip(join(folder, 'a.sealed'), 16), 'a.sealed cannot be decrypted'],
  ['its first byte', (folder) => flip(join(folder, 'a.sealed'), 0), 'a.sealed is not sealed state'],
  [
    'its format',
    (folder) => flip(join(folder, 'a.sealed'), 15),
    'a.sealed has the format of another version',
  ],
  ['its end', (folder) => truncate(join(folder, 'a.sealed'), 60), 'a.sealed cannot be decrypted'],
  ['most of it', (folder) => truncate(join(folder, 'a.sealed'), 20), 'a.sealed cannot be decrypted'],
  ['half its header', (folder) => truncate(join(folder, 'a.sealed'), 8), 'a.sealed is truncated'],
  ['all of it', (folder) => truncate(join(folder, 'a.sealed'), 0), 'a.sealed is truncated'],
  [
    'its name',
    (folder) => rename(join(folder, 'a.sealed'), join(folder, 'c.sealed')),
    'c.sealed cannot be decrypted',
  ],
  [
    'a copy',
    (folder) => copyFile(join(folder, 'a.sealed'), join(folder, 'c.sealed')),
    'c.sealed cannot be decrypted',
  ],
  [
    'other content',
    (folder) => writeFile(join(folder, 'a.sealed'), '{"rules": []}'),
    'a.sealed is not sealed',
  ],
  [
    'its size',
    (folder) => truncate(join(folder, 'a.sealed'), maxStateFileBytes + 1),
    `a.sealed is larger than ${maxStateFileBytes} bytes`,
  ],
  ['a directory', (folder) => mkdir(join(folder, 'c.sealed')), 'c.sealed is not a regular file'],
  [
    'a link',
    (folder) => symlink(join(folder, 'a.sealed'), join(folder, 'c.sealed')),
    'c.sealed cannot be read (ELOOP)',
  ],
];

describe('the start is stopped', () => {
  it.each(damages)('by a file with another %s', async (_, damage, found) => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    await damage(folder);
    const error = await start(scratch.path)
      .readAll()
      .catch((reason: Error) => reason);
    expect(String(error)).toContain(`${folder}: 1 of `);
    expect(String(error)).toContain(`files cannot be used: ${found}`);
    expect(String(error)).toContain(
      'Restore each file from a backup, or remove it to start over with that sandbox.',
    );
    expect(String(error)).not.toContain('not the key');
  });

  it('by a pipe instead of a file, without waiting for its other end', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    await runToEnd('mkfifo', [join(folder, 'c.sealed')]);
    await expect(start(scratch.path).readAll()).rejects.toThrow('c.sealed is not a regular file');
  });

  it('by another key, which is named, not quoted', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    const other = randomBytes(32).toString('base64');
    const error = await start(scratch.path, other)
      .readAll()
      .catch((reason: Error) => reason);
    expect(String(error)).toBe(
      `InputError: ${folder}: 2 of 2 files cannot be used: a.sealed cannot be decrypted, b.sealed cannot be decrypted; THE_VARIABLE is ` +
        'not the key that encrypted them, or they are damaged. Set the key that encrypted them, or remove this directory ' +
        'to start over.',
    );
  });

  it('by every damaged file at once, and lists some', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    for (let file = 0; file < 9; file += 1) await writeFile(join(folder, `x${file}.sealed`), 'random noise');
    await expect(start(scratch.path).readAll()).rejects.toThrow(
      '9 of 11 files cannot be used: x0.sealed is not sealed state, x1.sealed is not sealed state, ' +
        'x2.sealed is not sealed state, x3.sealed is not sealed state, x4.sealed is not sealed state and 4 more. ',
    );
  });

  it.each([
    'notes.txt',
    '.DS_Store',
    'A.sealed',
    '-.sealed',
    'a.sealed.bak',
    'a.sealed.tmp',
    'x.0123456789ab.tmp',
  ])('by a file of another name: %s', async (name) => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    await writeFile(join(folder, name), '');
    await expect(start(scratch.path).readAll()).rejects.toThrow(
      `${folder}: unknown files: ${name}. Move every file that is not named ID.sealed to another directory.`,
    );
    expect(await readdir(folder)).toContain(name);
  });

  it('by a name with control characters, which are escaped', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    await writeFile(join(folder, '\u001b[2J'), '');
    await expect(start(scratch.path).readAll()).rejects.toThrow(String.raw`unknown files: \u001b[2J.`);
  });

  it('and afterwards nothing is overwritten', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    await flip(join(folder, 'a.sealed'), -1);
    const before = await readFile(join(folder, 'a.sealed'));
    const store = start(scratch.path);
    await expect(store.readAll()).rejects.toThrow('cannot be decrypted');
    await expect(store.write('a', 'new')).rejects.toThrow('has state that was not read');
    expect(await readFile(join(folder, 'a.sealed'))).toEqual(before);
  });
});

describe('the temporary file of an interrupted write', () => {
  it('is removed, and only that', async () => {
    await using scratch = await createScratch();
    const directory = scratch.path;
    const key = { file: join(directory, 'state.key') };
    const first = new SealedStateStore({ directory, key });
    await first.write('a', 'state of a');
    await first.close();
    await writeFile(join(directory, 'sandboxes', 'a.sealed.0123456789ab.tmp'), 'half');
    await writeFile(join(directory, 'state.key.0123456789ab.tmp'), 'an incomplete key');
    await writeFile(join(directory, 'ca.key.0123456789ab.tmp'), 'of others');
    const store = new SealedStateStore({ directory, key });
    expect(await store.readAll()).toEqual(new Map([['a', 'state of a']]));
    await store.close();
    const left = await readdir(directory, { recursive: true });
    expect(left.filter((name) => name.endsWith('.tmp'))).toEqual(['ca.key.0123456789ab.tmp']);
  });
});

describe('a write that fails', () => {
  it('on a full disk leaves the old state, reports it, and leaves nothing else', async () => {
    await using scratch = await createScratch();
    const store = start(scratch.path);
    await store.close();
    const program = join(projectRoot, 'test', 'sidecar', 'state', 'state-writer-program.ts');
    // Its fourth state is the first large one. A limit on file size stands in for a full disk.
    const limited = 'ulimit -f 64 && exec "$0" "$1"';
    const input = `${JSON.stringify({ directory: scratch.path, first: 1 })}\n`;
    const { stdout, stderr } = await runToEnd('/bin/sh', ['-c', limited, process.execPath, program], {
      input,
    });
    const file = join(scratch.path, 'sandboxes', 'box.sealed');
    expect(stdout, stderr).toContain(
      `failed 4 Error: ${file}: cannot be written (EFBIG). Its previous content is unchanged.`,
    );
    // Before the next start would tidy up.
    expect(await readdir(join(scratch.path, 'sandboxes'))).toEqual(['box.sealed']);
    const after = new SealedStateStore({
      directory: scratch.path,
      key: { file: join(scratch.path, 'state.key') },
    });
    expect((await after.readAll()).get('box')).toBe('3:xxx:3');
    await after.close();
  });

  it('because its name is taken reports the file and the error', async () => {
    await using scratch = await createScratch();
    const folder = await sealTwo(scratch.path);
    const store = start(scratch.path);
    await store.readAll();
    await mkdir(join(folder, 'c.sealed', 'inside'), { recursive: true });
    await expect(store.write('c', 'state of c')).rejects.toThrow(
      `${join(folder, 'c.sealed')}: cannot be written (EISDIR)`,
    );
    await expect(store.remove('c')).rejects.toThrow(`${join(folder, 'c.sealed')}: cannot be removed (`);
    expect((await readdir(folder)).toSorted()).toEqual(['a.sealed', 'b.sealed', 'c.sealed']);
    await store.write('a', 'another state of a');
    await store.close();
  });
});

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { inMebibytes, packSource } from '../../../src/cli/deploy/source-archive.ts';
import { createScratch } from '../../support/scratch.ts';

const LONG = `${'deep/'.repeat(40)}${'n'.repeat(90)}.ts`;

async function write(root: string, files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return Object.keys(files);
}

describe('an archive', () => {
  it('has the files and nothing of this machine, as tar reads it', async () => {
    await using scratch = await createScratch();
    const paths = await write(scratch.path, {
      'a.ts': 'one',
      empty: '',
      'run.sh': '#!/bin/sh',
      [LONG]: 'x',
      'ü.ts': 'u',
    });
    await chmod(join(scratch.path, 'run.sh'), 0o4751);
    await using archive = await packSource(scratch.path, paths);
    const bytes = await buffer(archive.read());
    expect(bytes.length).toBe(archive.bytes);
    const listed = execFileSync('tar', ['-tvzf', '-', '--numeric-owner', '--quoting-style=literal'], {
      input: bytes,
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8' },
    });
    const rows = listed
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/));
    expect(rows.map(([mode, owner, size, day, , name]) => [mode, owner, size, day, name])).toEqual([
      ['-rw-r--r--', '0/0', '3', '1985-10-26', 'a.ts'],
      ['-rw-r--r--', '0/0', '0', '1985-10-26', 'empty'],
      ['-rwxr-xr-x', '0/0', '9', '1985-10-26', 'run.sh'],
      ['-rw-r--r--', '0/0', '1', '1985-10-26', LONG],
      ['-rw-r--r--', '0/0', '1', '1985-10-26', 'ü.ts'],
    ]);
  });

  it('of the same files has the same bytes, whenever they were written', async () => {
    await using one = await createScratch();
    await using two = await createScratch();
    const files = { 'a.ts': 'one', 'b.ts': 'x'.repeat(200_000) };
    const paths = await write(one.path, files);
    await write(two.path, files);
    await utimes(join(two.path, 'a.ts'), 1, 1);
    await chmod(join(two.path, 'b.ts'), 0o600);
    await using first = await packSource(one.path, paths);
    await using second = await packSource(two.path, paths);
    expect(first.sha256).toBe(second.sha256);
    expect(await buffer(first.read())).toEqual(await buffer(second.read()));
    expect(await buffer(first.read())).toEqual(await buffer(second.read()));
  });

  it('is not made of a file that has become a link or a named pipe', async () => {
    await using scratch = await createScratch();
    await symlink('/etc/hostname', join(scratch.path, 'link'));
    await expect(packSource(scratch.path, ['link'])).rejects.toThrow(/link cannot be read \(ELOOP\)/);
    execFileSync('mkfifo', [join(scratch.path, 'pipe')]);
    await expect(packSource(scratch.path, ['pipe'])).rejects.toThrow(/pipe is no regular file any more/);
  });

  it('is not made of a file that is gone', async () => {
    await using scratch = await createScratch();
    await write(scratch.path, { 'a.ts': 'one' });
    await rm(join(scratch.path, 'a.ts'));
    await expect(packSource(scratch.path, ['a.ts'])).rejects.toThrow(/a\.ts cannot be read \(ENOENT\)/);
  });

  it('of more than 200 MiB is an error that names the largest files', {
    tags: ['long'],
    timeout: 120_000,
  }, async () => {
    await using scratch = await createScratch();
    // Random, because it must not shrink.
    execFileSync('sh', ['-c', 'head -c 220000000 /dev/urandom > model.bin'], { cwd: scratch.path });
    await write(scratch.path, { 'a.ts': 'one' });
    await expect(packSource(scratch.path, ['a.ts', 'model.bin'])).rejects.toThrow(
      /more than 200\.0 MiB; the largest files so far: model\.bin \(209\.8 MiB\), a\.ts/,
    );
  });
});

it.each([
  [0, '0 KiB'],
  [1, '1 KiB'],
  [2 ** 20, '1.0 MiB'],
  [1.5 * 2 ** 20, '1.5 MiB'],
])('%d bytes are %s', (bytes, text) => expect(inMebibytes(bytes)).toBe(text));

// I5 for files: no file of the state contains the key or the sealed text, raw or encoded.
import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { createScratch } from '../../support/scratch.ts';

const CANARY: Buffer = Buffer.from('canary/4f1c9e?77~b1>d2');

/** The letters of base64 that a value gives whatever stands around it, for each of the three ways it may fall. */
function alignments(value: Buffer): readonly string[] {
  return [0, 1, 2].map((shift) => {
    const letters = Buffer.concat([Buffer.alloc(shift), value])
      .toString('base64')
      .replaceAll('=', '');
    return letters.slice(Math.ceil((shift * 8) / 6), -1);
  });
}

function spellings(value: Buffer): readonly Buffer[] {
  const base64 = alignments(value);
  const base64url = base64.map((letters) => letters.replaceAll('+', '-').replaceAll('/', '_'));
  const texts = [...base64, ...base64url, value.toString('hex'), value.toString('hex').toUpperCase()];
  return [value, ...texts.map((letters) => Buffer.from(letters))];
}

async function filesWith(directory: string, values: readonly Buffer[]): Promise<readonly string[]> {
  const wanted = values.flatMap(spellings);
  const found: string[] = [];
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = await readFile(join(entry.parentPath, entry.name));
    if (wanted.some((spelling) => bytes.includes(spelling))) found.push(entry.name);
  }
  return found;
}

it('no file of the state contains the key or the sealed text', async () => {
  await using scratch = await createScratch();
  const key = randomBytes(32);
  const store = new SealedStateStore({
    directory: scratch.path,
    key: { text: key.toString('base64'), from: 'THE_VARIABLE' },
  });
  for (const id of ['a', 'b']) {
    await store.write(id, `{"secret": "${CANARY}"}`);
    await store.write(id, `${CANARY}${CANARY.toString('base64')} ${'x'.repeat(100_000)}${CANARY}`);
  }
  await store.close();
  expect(await readdir(join(scratch.path, 'sandboxes'))).toEqual(['a.sealed', 'b.sealed']);
  expect(await filesWith(scratch.path, [CANARY, key])).toEqual([]);
});

it('only the key file contains the key', async () => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'state.key');
  const store = new SealedStateStore({ directory: scratch.path, key: { file } });
  await store.write('a', CANARY.toString());
  await store.close();
  const key = Buffer.from(await readFile(file, 'utf8'), 'base64');
  expect(key).toHaveLength(32);
  expect(await filesWith(scratch.path, [key])).toEqual(['state.key']);
  expect(await filesWith(scratch.path, [CANARY])).toEqual([]);
});

it.each([
  ['raw', `around${CANARY}it`],
  ['in base64', Buffer.from(CANARY).toString('base64')],
  ['in base64, one byte on', Buffer.from(`1${CANARY}23`).toString('base64')],
  ['in base64, two bytes on', Buffer.from(`12${CANARY}3`).toString('base64')],
  ['in base64url', Buffer.from(`12${CANARY}3`).toString('base64url')],
  ['in hex', CANARY.toString('hex')],
])('a leak is found: %s', async (_, leak) => {
  await using scratch = await createScratch();
  await writeFile(join(scratch.path, 'leak'), `x${leak}x`);
  expect(await filesWith(scratch.path, [CANARY])).toEqual(['leak']);
});

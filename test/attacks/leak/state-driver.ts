// Plays damage to the sealed state of two sandboxes, and reads it as a start does. The store is the real one, on a disk.
import { randomBytes } from 'node:crypto';
import { copyFile, readFile, readdir, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type StateKeySource, SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { findLeaks } from '../../e2e/canary-search.ts';
import { textCanary } from '../../e2e/canary-values.ts';
import { createScratch } from '../../support/scratch.ts';
import type { Damage, StateExpectation, StateScript } from './leak-script.ts';

const VALUE = 'canary-state-a87ff679a2f3e71d9181a67b7542122c';

export async function playState(script: StateScript, expected: StateExpectation): Promise<readonly string[]> {
  await using scratch = await createScratch();
  const directory = scratch.path;
  let key: { file: string } | { text: string; from: string } = {
    text: randomBytes(32).toString('base64'),
    from: 'THE_KEY',
  };
  const folder = join(directory, 'sandboxes');
  const store = new SealedStateStore({ directory, key });
  for (const id of ['a', 'b']) await store.write(id, `old state of ${id} ${VALUE}`);
  const old = new Map<string, Buffer>();
  for (const id of ['a', 'b']) old.set(id, await readFile(join(folder, `${id}.sealed`)));
  for (const id of ['a', 'b']) await store.write(id, `state of ${id} ${VALUE}`);
  await store.close();
  const found: string[] = [];
  if (sameNonces(old, await readFile(join(folder, 'a.sealed')))) found.push('a nonce came twice');
  for (const one of script.damage) {
    if (one.act === 'key') key = { text: one.hex, from: 'THE_KEY' };
    else await damage(folder, one, old);
  }
  const bytesBefore = await contentsOf(folder);
  const { end, read } = await readAll(directory, key);
  if (expected.refused !== undefined && !end.includes(expected.refused))
    found.push(`${end || 'it opened'} instead of ${expected.refused}`);
  if (expected.refused === undefined && end !== '') found.push(end);
  if (expected.reads && JSON.stringify(read) !== JSON.stringify(expected.reads))
    found.push(`read ${JSON.stringify(read)}`);
  if (JSON.stringify(bytesBefore) !== JSON.stringify(await contentsOf(folder)))
    found.push('the files were changed');
  const canary = textCanary('value', VALUE);
  return [
    ...found,
    ...findLeaks('the message', Buffer.from(end), [canary]),
    ...(await leaksIn(folder, canary)),
  ];
}

type Read = { readonly end: string; readonly read: Readonly<Record<string, string>> };

async function readAll(directory: string, key: StateKeySource): Promise<Read> {
  const again = new SealedStateStore({ directory, key });
  try {
    const states = await again.readAll();
    const read = Object.fromEntries([...states].map(([id, text]) => [id, text.replace(` ${VALUE}`, '')]));
    return { end: '', read };
  } catch (error) {
    return { end: String(error), read: {} };
  } finally {
    await again.close();
  }
}

async function damage(
  folder: string,
  one: Exclude<Damage, { act: 'key' }>,
  old: ReadonlyMap<string, Buffer>,
): Promise<void> {
  const file = join(folder, one.file);
  const bytes = await readFile(file).catch(() => Buffer.alloc(0));
  switch (one.act) {
    case 'flip': {
      const at = one.at < 0 ? bytes.length + one.at : one.at;
      bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      return writeFile(file, bytes);
    }
    case 'cut':
      return truncate(file, one.at < 0 ? bytes.length + one.at : one.at);
    case 'append':
      return writeFile(file, Buffer.concat([bytes, Buffer.alloc(one.at)]));
    case 'copy':
      return copyFile(file, join(folder, one.other));
    case 'swap':
      await rename(file, `${file}.x`);
      await rename(join(folder, one.other), file);
      return rename(`${file}.x`, join(folder, one.other));
    case 'join':
      return writeFile(file, Buffer.concat([bytes, await readFile(join(folder, one.other))]));
    case 'write':
      return writeFile(file, Buffer.from(one.hex, 'hex'));
    case 'rollback':
      return writeFile(file, old.get(one.file.replace('.sealed', '')) ?? bytes);
  }
}

const HEADER_BYTES = 16;
const NONCE_BYTES = 24;

function sameNonces(old: ReadonlyMap<string, Buffer>, now: Buffer): boolean {
  const nonces = [...old.values(), now].map((bytes) =>
    bytes.toString('hex', HEADER_BYTES, HEADER_BYTES + NONCE_BYTES),
  );
  return new Set(nonces).size !== nonces.length;
}

async function contentsOf(folder: string): Promise<readonly (readonly [string, string])[]> {
  const names = (await readdir(folder)).toSorted();
  return Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'hex')] as const));
}

async function leaksIn(folder: string, canary: ReturnType<typeof textCanary>): Promise<readonly string[]> {
  const names = await readdir(folder);
  const found = await Promise.all(
    names.map(async (name) => findLeaks(name, await readFile(join(folder, name)), [canary])),
  );
  return found.flat();
}

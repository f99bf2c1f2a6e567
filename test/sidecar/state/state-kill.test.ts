// Kills a writing sidecar a hundred times: the next start finds the last state that was confirmed, or the one that was
// begun after it.
// @module-tag long
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { SealedStateStore } from '../../../src/sidecar/state/state-store.ts';
import { createScratch } from '../../support/scratch.ts';
import { cleanEnvironment } from '../../support/spawned-process.ts';

const KILLS = 100;
const LANES = 4;
const KILLS_IN_A_DIRECTORY = 5;
const MAX_LINES_BEFORE = 8;
const MAX_SPIN_US = 5_000;

type Progress = { readonly begun: number; readonly stood: number };

/** A compile cache, because starting a hundred of them is most of the work. */
const writer = (cache: string): ChildProcess =>
  spawn(process.execPath, [join(import.meta.dirname, 'state-writer-program.ts')], {
    env: cleanEnvironment({ NODE_COMPILE_CACHE: cache }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });

/** One that ends by itself: only then is the cache written. */
async function fillCache(cache: string): Promise<void> {
  await using scratch = await createScratch();
  const child = writer(cache);
  child.stdout?.resume();
  child.stdin?.end(`${JSON.stringify({ directory: scratch.path, first: 1, last: 2 })}\n`);
  expect(await once(child, 'close')).toEqual([0, null]);
}

/** Lets it write from `first` on and kills it at some moment after some line of what it says. */
async function killWhileWriting(child: ChildProcess, directory: string, first: number): Promise<Progress> {
  let said = '';
  const lines = randomInt(1, MAX_LINES_BEFORE + 1);
  const closed = Promise.withResolvers<NodeJS.Signals | null>();
  child.on('close', (_code, signal) => closed.resolve(signal));
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (child.killed || said.split('\n').length <= lines) return;
    const end = performance.now() + randomInt(MAX_SPIN_US) / 1_000;
    while (performance.now() < end);
    child.kill('SIGKILL');
  });
  child.stdin?.write(`${JSON.stringify({ directory, first })}\n`);
  expect(await closed.promise, said).toBe('SIGKILL');
  const last = (word: string): number =>
    Number([...said.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].at(-1)?.[1] ?? first - 1);
  return { begun: last('begin'), stood: last('done') };
}

/** As the next start does. The number in what is kept, 0 if nothing is. */
async function storedNumber(directory: string): Promise<number> {
  const store = new SealedStateStore({ directory, key: { file: join(directory, 'state.key') } });
  const content = (await store.readAll()).get('box');
  await store.close();
  if (content === undefined) return 0;
  const [, number] = /^(\d+):x*:\1$/.exec(content) ?? [];
  return Number(number);
}

async function killInOneDirectory(cache: string): Promise<number> {
  await using scratch = await createScratch();
  let stored = 0;
  let midway = 0;
  let next = writer(cache);
  for (let kill = 0; kill < KILLS_IN_A_DIRECTORY; kill += 1) {
    const child = next;
    // Started ahead: it waits for its task while this one is at work.
    next = writer(cache);
    const { begun, stood } = await killWhileWriting(child, scratch.path, stored + 1);
    stored = await storedNumber(scratch.path);
    expect([stood, begun]).toContain(stored);
    if (begun > stood) midway += 1;
    const left = await readdir(scratch.path, { recursive: true });
    expect(left.filter((name) => name.endsWith('.tmp'))).toEqual([]);
  }
  next.kill('SIGKILL');
  return midway;
}

it(`killed ${KILLS} times while it writes, a sidecar finds the last confirmed state or the next one`, async () => {
  await using cache = await createScratch();
  await fillCache(cache.path);
  const lane = async (): Promise<number> => {
    let midway = 0;
    for (let kills = 0; kills < KILLS / LANES; kills += KILLS_IN_A_DIRECTORY)
      midway += await killInOneDirectory(cache.path);
    return midway;
  };
  const midway = await Promise.all(Array.from({ length: LANES }, lane));
  // Otherwise the kills fell where nothing can go wrong.
  expect(midway.reduce((sum, count) => sum + count)).toBeGreaterThan(KILLS / 2);
}, 120_000);

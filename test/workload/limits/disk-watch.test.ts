import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { DiskWatch } from '../../../src/workload/limits/disk-watch.ts';
import { createScratch } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

async function createWatched(watch: DiskWatch) {
  const scratch = await createScratch();
  const [own, other] = [join(scratch.path, 'own'), join(scratch.path, 'other')];
  await mkdir(own);
  await mkdir(other);
  const exceeded: string[] = [];
  const stop = watch.add({ limitBytes: 4 * MIB, paths: [own, other], exceed: () => exceeded.push('disk') });
  onTestFinished(async () => {
    stop();
    await scratch[Symbol.asyncDispose]();
  });
  return { own, other, exceeded, stop };
}

it('ends a workload whose directories together hold more than it may write', async () => {
  const watch = new DiskWatch();
  const { own, other, exceeded } = await createWatched(watch);
  await writeFile(join(own, 'file'), Buffer.alloc(3 * MIB, 1));
  await watch.check(0);
  expect(exceeded).toEqual([]);
  await writeFile(join(other, 'file'), Buffer.alloc(3 * MIB, 1));
  await watch.check(120_000);
  expect(exceeded).toEqual(['disk']);
});

it('ends nobody else, and nobody who is not watched any more', async () => {
  const watch = new DiskWatch();
  const [one, neighbour] = [await createWatched(watch), await createWatched(watch)];
  await writeFile(join(one.own, 'file'), Buffer.alloc(8 * MIB, 1));
  one.stop();
  await watch.check(0);
  expect([one.exceeded, neighbour.exceeded]).toEqual([[], []]);
});

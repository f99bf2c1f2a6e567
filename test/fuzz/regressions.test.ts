// Every seed of the fuzz targets, and every input that once broke one: what `npm run fuzz` starts from holds here too.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';

type Target = { readonly fuzz: (data: Buffer) => void | Promise<void> };

const folder = import.meta.dirname;
const targets = globSync('*.ts', { cwd: join(folder, 'targets') })
  .map((file) => basename(file, '.ts'))
  .toSorted();

describe.each(targets)('the fuzz target %s', async (name) => {
  const { fuzz }: Target = await import(`./targets/${name}.ts`);
  const seeds = globSync('*', { cwd: join(folder, 'seeds', name) }).toSorted();

  it('has seeds', () => expect(seeds.length).toBeGreaterThanOrEqual(5));

  it.each(seeds)('holds for %s', async (seed) => {
    await fuzz(readFileSync(join(folder, 'seeds', name, seed)));
  });

  it('holds for nothing at all', async () => {
    await fuzz(Buffer.alloc(0));
  });
});

describe('seeds', () => {
  it('each belong to a target', () =>
    expect(globSync('*', { cwd: join(folder, 'seeds') }).toSorted()).toEqual(targets));
});

// Graphs that take all they can get, on the program: runs of others end meanwhile, and the server says that it lives. How fast it says
// so is measured by `npm run bench -- agent --only hostile`.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { besideHostile, HOSTILITIES } from './hostile-load.ts';
import { HOSTILE } from './tenants-graphs.ts';
import { startTenants, type Tenants } from './tenants-scene.ts';

let tenants: Tenants;

beforeAll(async () => {
  tenants = await startTenants({
    graphs: { hostile: './hostile.ts:graph' },
    files: { 'hostile.ts': HOSTILE },
  });
}, 60_000);
afterAll(() => tenants?.[Symbol.asyncDispose]());

it.each(HOSTILITIES)(
  'others go on beside one that does %s',
  { tags: 'long', timeout: 180_000 },
  async (does) => {
    const { runs, failed, oks, hostile } = await besideHostile(tenants.url, does, does === 'loop' ? 45 : 10);
    expect(failed).toEqual([]);
    // One may have been on the worker that the loop holds up: it is executed elsewhere when that worker is ended.
    expect(runs.length).toBeGreaterThan(0);
    expect(oks.every(Number.isFinite)).toBe(true);
    if (does === 'emit') expect(hostile.megabytes).toBeGreaterThan(10);
  },
);

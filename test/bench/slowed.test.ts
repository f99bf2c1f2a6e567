// The benchmark shows what it is for: a proxy that computes for 20 us more in each request has worse ratios. No figure is
// compared with a constant. The two proxies take turns, and nothing else runs meanwhile (vitest.config.ts).
// @module-tag long
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPackage } from '../support/program-package.ts';
import { type Scratch, createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';
import { slowDown } from './bench-package.ts';

type Report = {
  readonly ratios: Readonly<Record<string, number>>;
  readonly rounds: Readonly<Record<string, readonly number[]>>;
  readonly further_ratios: Readonly<Record<string, { readonly rounds: readonly number[] }>>;
};

const KEYS: readonly string[] = [
  'cpu_vs_nginx_h1_32',
  'cpu_vs_goproxy_h1_32',
  'cpu_vs_squid_h1_32',
  'p50_added_vs_nginx_1',
  'p99_added_vs_nginx_1',
  'tunnel_8_vs_nginx',
  'callback_hit_vs_rule',
  'h2_4x8_vs_nginx',
  'rss_idle_mb',
  'rss_loaded_mb',
  'start_ms',
  'start_vs_node',
];

/** The median of each CPU ratio to another proxy, of the rounds of all reports. */
function medians(reports: readonly Report[]): Readonly<Record<string, number>> {
  const rounds: Record<string, number[]> = {};
  const add = (key: string, values: readonly number[]): unknown => (rounds[key] ??= []).push(...values);
  for (const { rounds: own, further_ratios: further } of reports) {
    for (const [key, values] of Object.entries(own)) if (key.startsWith('cpu_vs_')) add(key, values);
    add('cpu_vs_relay_h1_32', further['cpu_vs_relay_h1_32']?.rounds ?? []);
  }
  const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
  return Object.fromEntries(Object.entries(rounds).map(([key, values]) => [key, median(values)]));
}

describe('npm run bench -- --quick --json', () => {
  let scratch: Scratch;
  const normal: Report[] = [];
  const slowed: Report[] = [];

  beforeAll(async () => {
    scratch = await createScratch();
    const ordinary = join(scratch.path, 'ordinary');
    const slower = join(scratch.path, 'slower');
    await createPackage(ordinary);
    await createPackage(slower);
    await slowDown(slower, 20);
    normal.push(await measure(ordinary));
    slowed.push(await measure(slower), await measure(slower));
    normal.push(await measure(ordinary));
  }, 240_000);
  afterAll(() => scratch[Symbol.asyncDispose]());

  async function measure(folder: string): Promise<Report> {
    const bench = join(projectRoot, 'bench', 'injection.ts');
    const less = ['--only', 'keep-alive', '--rounds', '5', '--seconds', '20'];
    const args = [bench, '--quick', '--json', '--package', folder, ...less];
    const { code, stdout, stderr } = await runToEnd(process.execPath, args);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as Report;
  }

  it('has a higher CPU ratio to every other proxy when each request costs 20 us more', () => {
    const [before, after] = [medians(normal), medians(slowed)];
    expect(Object.keys(before)).toContain('cpu_vs_relay_h1_32');
    for (const [key, value] of Object.entries(before))
      expect([key, after[key]]).toEqual([key, expect.toSatisfy((slower) => slower > value)]);
  });

  it('has the keys that two commits are compared by, as numbers with their rounds, and none that it did not measure', () => {
    for (const { ratios, rounds } of [...normal, ...slowed]) {
      expect(KEYS).toEqual(expect.arrayContaining(Object.keys(ratios)));
      expect(Object.keys(ratios)).toEqual(expect.arrayContaining(['callback_hit_vs_rule', 'rss_loaded_mb']));
      expect(ratios).not.toHaveProperty('start_ms');
      for (const [key, value] of Object.entries(ratios)) {
        expect(value).toBeGreaterThan(0);
        expect(rounds[key]?.length).toBeGreaterThanOrEqual(1);
      }
    }
  });
});

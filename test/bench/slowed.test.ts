// The benchmark shows what it is for: a proxy that computes for 20 us more in each request has worse ratios. No figure is
// compared with a constant.
// @module-tag long
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Scratch, createScratch } from '../support/scratch.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';
import { buildPackage, slowDown } from './bench-package.ts';

type Report = {
  readonly ratios: Readonly<Record<string, number>>;
  readonly rounds: Readonly<Record<string, readonly number[]>>;
  readonly further_ratios: Readonly<Record<string, { readonly value: number }>>;
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

describe('npm run bench -- --quick --json', () => {
  let scratch: Scratch;
  const reports: Report[] = [];

  beforeAll(async () => {
    scratch = await createScratch();
    for (const microseconds of [0, 20]) {
      const folder = join(scratch.path, `slower-by-${microseconds}`);
      await buildPackage(folder);
      if (microseconds > 0) await slowDown(folder, microseconds);
      reports.push(await measure(folder));
    }
  }, 240_000);
  afterAll(() => scratch[Symbol.asyncDispose]());

  async function measure(folder: string): Promise<Report> {
    const bench = join(projectRoot, 'bench', 'injection.ts');
    const less = ['--only', 'keep-alive', '--rounds', '5', '--seconds', '25'];
    const args = [bench, '--quick', '--json', '--package', folder, ...less];
    const { code, stdout, stderr } = await runToEnd(process.execPath, args);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as Report;
  }

  it('has a higher CPU ratio to every other proxy when each request costs 20 us more', () => {
    const [normal, slowed] = reports;
    const ratios = ({ ratios: own, further_ratios: further }: Report): Record<string, number> => ({
      ...own,
      cpu_vs_relay_h1_32: further['cpu_vs_relay_h1_32']?.value ?? Number.NaN,
    });
    if (!normal || !slowed) throw new Error('two runs were expected');
    const [before, after] = [ratios(normal), ratios(slowed)];
    const keys = Object.keys(before).filter((key) => key.startsWith('cpu_vs_'));
    expect(keys).toContain('cpu_vs_relay_h1_32');
    for (const key of keys)
      expect([key, after[key]]).toEqual([key, expect.toSatisfy((value) => value > (before[key] ?? 0))]);
  });

  it('has the keys that two commits are compared by, as numbers with their rounds, and none that it did not measure', () => {
    for (const { ratios, rounds } of reports) {
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

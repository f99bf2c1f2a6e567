// What the benchmark reports of its surroundings: TLS of both sides, other processes during the run, and which Sallyport it is.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { otherLoadWarnings, watchOtherLoad } from '../../bench/support/other-load.ts';
import { describeProduct } from '../../bench/support/product.ts';
import { commonSuite, createSuiteLog, suiteWarnings } from '../../bench/support/tls-suites.ts';
import { projectRoot } from '../support/spawned-process.ts';

it('a subject with another TLS suite on either side is a warning', () => {
  const log = createSuiteLog();
  log.add('rule', ['AES-256'], ['AES-256']);
  log.add('rule', ['AES-256'], []);
  log.add('nginx', ['AES-256'], ['AES-128']);
  expect(log.all()).toEqual({
    rule: { client: ['AES-256'], upstream: ['AES-256'] },
    nginx: { client: ['AES-256'], upstream: ['AES-128'] },
  });
  expect(commonSuite(log.all())).toBe('AES-256');
  expect(suiteWarnings(log.all())).toEqual([
    'nginx used AES-128 with the origin, and most others AES-256: compare with care',
  ]);
  expect([commonSuite({}), suiteWarnings({})]).toEqual([undefined, []]);
});

it('the load of other processes is what the cores did without ours, over the run and in the busiest round', () => {
  const ticks = [
    { all: 0, used: 0, ours: 0 },
    { all: 100, used: 80, ours: 80 },
    { all: 200, used: 180, ours: 120 },
    { all: 210, used: 190, ours: 120 },
    { all: 400, used: 200, ours: 140 },
  ];
  let turn = 0;
  const { sample, result } = watchOtherLoad(() => ticks[turn++] ?? { all: 0, used: 0, ours: 0 });
  sample();
  sample();
  // Too short for a share.
  sample();
  expect(result()).toEqual({ percent: 15, most_percent: 60 });
  expect(otherLoadWarnings({ percent: 15, most_percent: 60 })[0]).toContain(
    '15 % of the cores during the run',
  );
  expect(otherLoadWarnings({ percent: 2, most_percent: 20 })).toEqual([]);
});

it('this process is not another one', () => {
  const { result } = watchOtherLoad();
  const { percent, most_percent } = result();
  expect(percent).toBeGreaterThanOrEqual(0);
  expect(most_percent).toBeLessThanOrEqual(100);
});

it('the product has a version, and a commit if it is a checkout', () => {
  expect(describeProduct(undefined).version).toMatch(/^\d+\.\d+\.\d+/);
  expect(describeProduct(undefined).commit).toMatch(/^([0-9a-f]{40}(-dirty)?|unknown)$/);
  // A folder inside of a checkout is not that checkout.
  const inside = join(projectRoot, 'bench');
  expect(describeProduct(inside)).toEqual({ version: 'unknown', commit: 'unknown', package: inside });
});

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { ProxyCounters, Total, failureReasons, protocols, refusalCodes } from '../../src/proxy/counters.ts';
import { type ExchangeRecord, outcomes } from '../../src/proxy/record.ts';
import { projectRoot } from '../support/spawned-process.ts';

const recordOf = (fields: Partial<ExchangeRecord>): ExchangeRecord => ({
  ...{ sandbox: 'default', revision: 1, scheme: 'https', bytes_up: 0, bytes_down: 0 },
  ...fields,
});

const requestsOf = ({ requests }: ProxyCounters): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...requests].flatMap((count, at) => {
      const name = `${outcomes[Math.floor(at / protocols.length)]} ${protocols[at % protocols.length]}`;
      return count === 0 ? [] : [[name, count]];
    }),
  );

const TIMES = 500_000;

describe('an exchange is counted', () => {
  it('once by its outcome and protocol', () => {
    const counters = new ProxyCounters();
    for (const outcome of outcomes) {
      counters.countExchange(recordOf({ outcome }), 1);
      counters.countExchange(recordOf({ outcome, protocol: 'h2' }), 1);
      counters.countExchange(recordOf({ outcome, scheme: 'tunnel' }), 1);
    }
    const expected = outcomes.flatMap((outcome) => protocols.map((one) => [`${outcome} ${one}`, 1]));
    expect(requestsOf(counters)).toEqual(Object.fromEntries(expected));
  });

  it('with its bytes, its injection, its connection, its rule and its time', () => {
    const counters = new ProxyCounters();
    const injected = { rule: 'api', injected: ['Authorization'], outcome: 'injected' } as const;
    counters.countExchange(recordOf({ ...injected, upstream_reused: false, bytes_up: 5, bytes_down: 7 }), 3);
    counters.countExchange(recordOf({ ...injected, upstream_reused: true, bytes_up: 1, bytes_down: 2 }), 40);
    counters.countExchange(recordOf({ callback: 'team', outcome: 'failed', reason: 'callback_failed' }), 9);
    const { totals } = counters;
    expect([totals[Total.bytesUp], totals[Total.bytesDown], totals[Total.injections]]).toEqual([6, 9, 2]);
    expect([totals[Total.newUpstreams], totals[Total.reusedUpstreams]]).toEqual([1, 1]);
    expect(counters.rules.rows()).toEqual([{ name: 'api', values: [2, 0, 0, 0, 0, 0, 0] }]);
    expect(counters.callbackRequests.rows()).toEqual([{ name: 'team', values: [0, 0, 0, 0, 1, 0, 0] }]);
    expect(counters.requestSeconds.read()).toMatchObject({
      count: 2,
      buckets: [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
    });
  });

  it.each([
    ['a refusal by its code', { outcome: 'refused', reason: 'access_denied' }, 'access_denied'],
    ['a refusal with a 5xx status too', { outcome: 'failed', reason: 'dns_failed' }, 'dns_failed'],
    ['another failure by its reason', { outcome: 'failed', reason: 'client_gone' }, 'client_gone'],
    ['an unknown reason as another one', { outcome: 'failed', reason: 'new' }, 'other'],
    ['the reason of what was forwarded not', { outcome: 'forwarded', reason: 'no_proxy' }, undefined],
  ] as const)('%s', (_, fields, expected) => {
    const counters = new ProxyCounters();
    counters.countExchange(recordOf(fields), 1);
    const named = (names: readonly string[], counts: Float64Array): readonly (string | undefined)[] =>
      [...counts].flatMap((count, at) => (count === 0 ? [] : [names[at]]));
    const found = [...named(refusalCodes, counters.refusals), ...named(failureReasons, counters.failures)];
    expect(found).toEqual(expected === undefined ? [] : [expected]);
  });
});

it('every reason that the data path gives is in a list', () => {
  const known = new Set<string>([...refusalCodes, ...failureReasons]);
  // What was forwarded or relayed has reasons of other kinds.
  for (const other of ['no_match', 'no_proxy', 'no_path_match', 'closed']) known.add(other);
  const found = new Set<string>();
  for (const path of globSync('src/proxy/{h1,h2,tunnel,gate,accept}/*.ts', { cwd: projectRoot })) {
    const text = readFileSync(join(projectRoot, path), 'utf8');
    for (const [, reason = ''] of text.matchAll(/(?:\breason: (?:[^'\n]*\? )?|#fail\()'(\w+)'/g))
      found.add(reason);
  }
  expect(found.size).toBeGreaterThan(15);
  expect([...found].filter((reason) => !known.has(reason))).toEqual([]);
});

it('counting allocates nothing', () => {
  const counters = new ProxyCounters();
  const record = recordOf({
    ...{ outcome: 'injected', rule: 'api', injected: ['A'], upstream_reused: true, bytes_up: 1 },
  });
  const count = (times: number): void => {
    for (let i = 0; i < times; i += 1) counters.countExchange(record, 2.5);
  };
  // Until it is compiled.
  count(200_000);
  const before = getHeapStatistics().total_allocated_bytes;
  count(TIMES);
  const allocated = getHeapStatistics().total_allocated_bytes - before;
  expect(allocated / TIMES).toBeLessThan(1);
});

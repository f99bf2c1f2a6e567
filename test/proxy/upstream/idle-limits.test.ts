// What is learnt about the idle connections of a host, and for how long. The clock is ours.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { IdleLimits } from '../../../src/proxy/upstream/idle-limits.ts';

const HOST = 'https://a.test:443';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('begins with 4 s', () => {
  expect(new IdleLimits().of(HOST)).toEqual({ limitMs: 4_000, provenMs: 4_000 });
});

it('doubles while the host keeps its connections, up to a minute, and proves what was seen only', () => {
  const limits = new IdleLimits();
  const seen: unknown[] = [];
  for (let i = 0; i < 6; i += 1) {
    limits.onOutlived(HOST, limits.of(HOST).limitMs);
    const { limitMs, provenMs } = limits.of(HOST);
    seen.push([limitMs, provenMs]);
  }
  expect(seen).toEqual([
    [8_000, 4_000],
    [16_000, 8_000],
    [32_000, 16_000],
    [60_000, 32_000],
    [60_000, 60_000],
    [60_000, 60_000],
  ]);
});

it('stays a second below the earliest closing of the host, however long others were open', () => {
  const limits = new IdleLimits();
  limits.onOutlived(HOST, 4_000);
  limits.onClosed(HOST, 6_000);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 5_000, provenMs: 5_000 });
  limits.onOutlived(HOST, 5_000);
  limits.onClosed(HOST, 9_000);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 5_000, provenMs: 5_000 });
  limits.onClosed(HOST, 5_500);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 4_500, provenMs: 4_500 });
});

it('is never below a second: a restart of the host closes connections of any age', () => {
  const limits = new IdleLimits();
  limits.onClosed(HOST, 3);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 1_000, provenMs: 1_000 });
});

it('of a connection that was pooled under an earlier limit changes nothing', () => {
  const limits = new IdleLimits();
  limits.onOutlived(HOST, 4_000);
  limits.onOutlived(HOST, 8_000);
  limits.onOutlived(HOST, 4_000);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 16_000, provenMs: 8_000 });
});

it('is forgotten after ten minutes, belongs to one host, and is kept for a thousand of them', () => {
  const limits = new IdleLimits();
  limits.onClosed(HOST, 3_000);
  expect(limits.of('https://b.test:443')).toEqual({ limitMs: 4_000, provenMs: 4_000 });
  vi.advanceTimersByTime(599_999);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 2_000 });
  vi.advanceTimersByTime(1);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 4_000 });
  limits.onClosed(HOST, 3_000);
  for (let i = 0; i < 1_000; i += 1) limits.onClosed(`https://${i}.test:443`, 3_000);
  expect(limits.of(HOST)).toMatchObject({ limitMs: 4_000 });
});

// The arithmetic of the benchmark's ratios, and rounds in turns in which one subject fails.
import { describe, expect, it } from 'vitest';
import { type Round, type Run, type Series, measureInTurns } from '../../bench/support/round.ts';
import { ratiosOf } from '../../bench/support/ratios.ts';

function series(load: string, subject: string, figure: string, values: readonly number[]): Series {
  return { load, subject, rounds: values.map((value): Round => ({ [figure]: value })) };
}

describe('the ratios', () => {
  it('are medians of the ratios of the rounds, with both sides', () => {
    const { named } = ratiosOf([
      series('h1_32', 'rule', 'cpu_us', [40, 60, 90]),
      series('h1_32', 'nginx', 'cpu_us', [20, 20, 20]),
    ]);
    expect(named['cpu_vs_nginx_h1_32']).toMatchObject({
      value: 3,
      rounds: [2, 3, 4.5],
      ours: { subject: 'rule', median: 60, low: 40, high: 90 },
      theirs: { subject: 'nginx', median: 20 },
    });
  });

  it('of added latency are ratios of the medians of what each side adds', () => {
    const { named } = ratiosOf([
      series('h1_1', 'direct', 'p50_ms', [1, 1, 1]),
      series('h1_1', 'rule', 'p50_ms', [3, 4, 9]),
      series('h1_1', 'nginx', 'p50_ms', [2, 3, 4]),
    ]);
    expect(named['p50_added_vs_nginx_1']).toMatchObject({ value: 1.5, rounds: [2, 1.5, 2.667] });
  });

  it('that were not measured are absent, also when noise makes a difference negative', () => {
    const { named } = ratiosOf([
      series('h1_1', 'direct', 'p99_ms', [2]),
      series('h1_1', 'rule', 'p99_ms', [3]),
      series('h1_1', 'nginx', 'p99_ms', [1]),
      series('h1_32', 'rule', 'rss_mb', [100, 110, 120]),
    ]);
    expect(Object.keys(named)).toEqual(['rss_loaded_mb']);
    expect(named['rss_loaded_mb']).toMatchObject({ value: 110, rounds: [100, 110, 120] });
  });
});

describe('rounds in turns', () => {
  function runs(calls: string[], failing?: string): readonly Run[] {
    return ['a', 'b', 'c'].map((subject) => ({
      load: 'x',
      subject,
      measure() {
        calls.push(subject);
        if (subject === failing) return Promise.reject(new Error('refused'));
        return Promise.resolve({ cpu_us: calls.length });
      },
    }));
  }

  it('measure every run once, every other round in reverse order', async () => {
    const calls: string[] = [];
    const found = await measureInTurns(runs(calls), { rounds: 2, untilMs: Infinity });
    expect(calls.join('')).toBe('abccba');
    expect(found.map(({ subject, rounds }) => [subject, rounds.length])).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 2],
    ]);
  });

  it('end after three when the time is over', async () => {
    const found = await measureInTurns(runs([]), { rounds: 9, untilMs: 0 });
    expect(found[0]?.rounds).toHaveLength(3);
  });

  it('go on without an optional run that fails, and fail otherwise', async () => {
    const failures: string[] = [];
    const isOptional = (_: Run, error: Error): boolean => failures.push(error.message) > 0;
    const found = await measureInTurns(runs([], 'b'), { rounds: 2, untilMs: Infinity, isOptional });
    expect(found.map(({ subject }) => subject)).toEqual(['a', 'c']);
    expect(failures).toEqual(['b, load x: refused']);
    await expect(measureInTurns(runs([], 'b'), { rounds: 2, untilMs: Infinity })).rejects.toThrow(
      'b, load x: refused',
    );
  });
});

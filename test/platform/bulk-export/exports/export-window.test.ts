// Windows are cut at each midnight of UTC, without a gap and without an overlap.
import { describe, expect, it } from 'vitest';
import { toCanonicalTime } from '../../../../src/platform/bulk-export/exports/export-time.ts';
import {
  daysOf,
  dueAt,
  intervalFrom,
  isTooLong,
} from '../../../../src/platform/bulk-export/exports/export-window.ts';

const at = (text: string): string => toCanonicalTime(text) ?? 'no time';

describe('the days of a window', () => {
  it('are whole, except the first and the last', () => {
    const window = { from: at('2026-02-27T22:30:00.000001Z'), to: at('2026-03-02T00:00:00.5Z') };
    expect(daysOf(window)).toEqual([
      { from: '2026-02-27T22:30:00.000001Z', to: '2026-02-28T00:00:00.000000Z' },
      { from: '2026-02-28T00:00:00.000000Z', to: '2026-03-01T00:00:00.000000Z' },
      { from: '2026-03-01T00:00:00.000000Z', to: '2026-03-02T00:00:00.000000Z' },
      { from: '2026-03-02T00:00:00.000000Z', to: '2026-03-02T00:00:00.500000Z' },
    ]);
  });

  it('are as many as the longest window has', () => {
    const window = { from: at('2026-01-01T00:00:00Z'), to: at('2027-02-05T00:00:00Z') };
    expect([isTooLong(window), daysOf(window).length]).toEqual([false, 400]);
    expect(isTooLong({ ...window, to: at('2027-02-05T00:00:00.000001Z') })).toBe(true);
  });
});

it('a schedule makes an export ten minutes after the end of its interval', () => {
  const window = intervalFrom(at('2026-03-01T12:00:00.000001Z'), 36);
  expect(window.to).toBe('2026-03-03T00:00:00.000001Z');
  expect(dueAt(window).toISOString()).toBe('2026-03-03T00:10:00.001Z');
});

describe('a time', () => {
  it.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000000Z'],
    ['2026-03-01T12:00:00.123456789+02:00', '2026-03-01T10:00:00.123456Z'],
    ['2026-03-01t12:00:00.1z', '2026-03-01T12:00:00.100000Z'],
    // Without an offset.
    ['2026-03-01T12:00', '2026-03-01T12:00:00.000000Z'],
  ])('%s is %s', (given, expected) => {
    expect(toCanonicalTime(given)).toBe(expected);
  });

  it.each(['2026-03-01', '2026-02-30T00:00:00Z!', '1969-12-31T23:59:59Z', '9999-01-01T00:00:00Z', 'now', ''])(
    'cannot be %s',
    (given) => {
      expect(toCanonicalTime(given)).toBeUndefined();
    },
  );
});

import { expect, it } from 'vitest';
import { formatDuration, formatTime, microsecondsOf } from '../../../../src/platform/api/pages/page-time.ts';

it('times have milliseconds, and durations three digits that count', () => {
  expect(formatTime('2026-11-20T12:00:00.123456Z')).toBe('2026-11-20 12:00:00.123');
  expect(
    [0, 850, 1_000, 12_345, 123_456, 1_234_567, 59_994_000, 65_000_000, 7_260_000_000, -400_000].map(
      formatDuration,
    ),
  ).toEqual([
    ...[
      '0 µs',
      '850 µs',
      '1.00 ms',
      '12.3 ms',
      '123 ms',
      '1.23 s',
      '60.0 s',
      '1 min 5 s',
      '2 h 1 min',
      '-400 ms',
    ],
  ]);
  const [from, to] = ['2026-11-20T12:00:00.999999Z', '2026-11-20T12:00:01.000000Z'].map(microsecondsOf);
  expect((to ?? 0) - (from ?? 0)).toBe(1);
});

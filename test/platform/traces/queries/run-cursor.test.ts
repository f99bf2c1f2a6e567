import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatRunCursor, parseRunCursor } from '../../../../src/platform/traces/queries/run-cursor.ts';

const place = { start_time: '2026-11-20T12:00:00.123456Z', id: randomUUID() };

it('the cursor of a list is that of no other list', () => {
  const cursor = formatRunCursor(place, { filter: 'a' });
  expect(parseRunCursor(cursor, { filter: 'a' })).toEqual(place);
  expect(parseRunCursor(cursor, { filter: 'b' })).toBeUndefined();
  expect(parseRunCursor('e30', { filter: 'a' })).toBeUndefined();
});

it.each([
  { ...place, start_time: '0000-01-01T00:00:00.000000Z' },
  { ...place, start_time: '1969-12-31T23:59:59.999999Z' },
  { ...place, start_time: '2026-11-20T12:00:00.1234567Z' },
  { ...place, start_time: '-infinity' },
  { ...place, id: 'x' },
])('a cursor with a place that no run has, %o, is none', (forged) => {
  expect(parseRunCursor(formatRunCursor(forged, {}), {})).toBeUndefined();
});

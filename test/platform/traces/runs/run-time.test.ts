import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatSegment,
  parseDottedOrder,
  toMicroseconds,
} from '../../../../src/platform/traces/runs/run-time.ts';

describe('a time', () => {
  it.each([
    ['2026-11-24T01:02:03.123456Z', '2026-11-24T01:02:03.123456Z'],
    ['2026-11-24T01:02:03.1234569+00:00', '2026-11-24T01:02:03.123456Z'],
    ['2026-11-24T01:02:03', '2026-11-24T01:02:03.000000Z'],
    ['2026-11-24T01:02:03.5+02:30', '2026-11-23T22:32:03.500000Z'],
    ['2026-11-24 01:02', '2026-11-24T01:02:00.000000Z'],
    [1_795_482_123_456, '2026-11-24T01:02:03.456000Z'],
    [1_795_482_123_456.789, '2026-11-24T01:02:03.456789Z'],
    [0, '1970-01-01T00:00:00.000000Z'],
  ])('%j is %s', (given, expected) => expect(toMicroseconds(given)).toBe(expected));

  it.each([
    '',
    'now',
    '2026-13-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '2026-11-24',
    -1,
    Number.NaN,
    1e18,
    null,
    {},
  ])('%j is none', (given) => expect(toMicroseconds(given)).toBeUndefined());
});

describe('a dotted order', () => {
  const segment = (id: string): string => formatSegment('2026-11-24T01:02:03.000004Z', id);

  it('says which runs are above a run, and when it started', () => {
    fc.assert(
      fc.property(fc.array(fc.uuid(), { minLength: 1, maxLength: 5 }), (ids) => {
        const text = ids.map(segment).join('.');
        expect(parseDottedOrder(text)).toEqual({
          ...{
            id: ids.at(-1),
            trace_id: ids[0],
            parent_run_id: ids.at(-2) ?? null,
            parent_run_ids: ids.slice(0, -1),
          },
          ...{ start_time: '2026-11-24T01:02:03.000004Z', dotted_order: text },
        });
      }),
    );
  });

  it('has ids in lower case', () => {
    const id = randomUUID();
    expect(parseDottedOrder(segment(id.toUpperCase()))).toMatchObject({ id, dotted_order: segment(id) });
  });

  it.each(['', '.', 'x', segment('x'), `${segment(randomUUID())}.`, `20261324T010203000004Z${randomUUID()}`])(
    'is not %j',
    (text) => expect(parseDottedOrder(text)).toBeUndefined(),
  );
});

// Ranges and validators by RFC 9110.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allowsRange, decideRange, isUnmodified } from '../../../src/box-host/data-plane/byte-range.ts';

const whole = { kind: 'whole' };
const part = (offset: number, length: number) => ({ kind: 'part', range: { offset, length } });
const unsatisfiable = { kind: 'unsatisfiable' };

describe('a range', () => {
  it.each<[string | undefined, number, object]>([
    [undefined, 10, whole],
    ['bytes=0-0', 10, part(0, 1)],
    ['bytes=0-9', 10, part(0, 10)],
    ['bytes=0-99', 10, part(0, 10)],
    ['bytes=9-', 10, part(9, 1)],
    ['Bytes=1-2', 10, part(1, 2)],
    ['bytes=-4', 10, part(6, 4)],
    ['bytes=-40', 10, part(0, 10)],
    ['bytes=10-', 10, unsatisfiable],
    ['bytes=10-20', 10, unsatisfiable],
    ['bytes=-0', 10, unsatisfiable],
    ['bytes=0-', 0, unsatisfiable],
    ['bytes=-1', 0, unsatisfiable],
    ['bytes=5-4', 10, whole],
    ['bytes=0-1,3-4', 10, whole],
    ['lines=0-1', 10, whole],
    ['bytes=-', 10, whole],
    ['bytes=a-b', 10, whole],
    [`bytes=${'9'.repeat(40)}-`, 10, whole],
  ])('%s of %d bytes', (field, size, expected) => expect(decideRange(field, size)).toEqual(expected));

  it('always lies within the file', () => {
    const number = fc.oneof(fc.nat({ max: 30 }).map(String), fc.constant(''));
    fc.assert(
      fc.property(number, number, fc.nat({ max: 20 }), (from, to, size) => {
        const decision = decideRange(`bytes=${from}-${to}`, size);
        if (decision.kind !== 'part') return;
        const { offset, length } = decision.range;
        expect(length).toBeGreaterThan(0);
        expect(offset + length).toBeLessThanOrEqual(size);
      }),
    );
  });
});

describe('a validator', () => {
  const validators = { etag: '"a"', lastModified: 'Mon, 23 Nov 2026 08:00:00 GMT' };

  it.each([
    [undefined, false],
    ['"a"', true],
    ['"b", W/"a"', true],
    ['*', true],
    ['"b"', false],
    ['a', false],
  ])('If-None-Match %s', (field, expected) => expect(isUnmodified(field, validators)).toBe(expected));

  it.each([
    [undefined, true],
    ['"a"', true],
    ['W/"a"', false],
    ['"b"', false],
    ['Mon, 23 Nov 2026 08:00:00 GMT', true],
    ['Mon, 23 Nov 2026 09:00:00 GMT', false],
  ])('If-Range %s', (field, expected) => expect(allowsRange(field, validators)).toBe(expected));
});

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { formatCursor, parseCursor } from '../../../src/platform/store/page-cursor.ts';

const place = z.strictObject({ time: z.string(), number: z.int() });
const filters = ['a workspace', null];
const cursor = formatCursor({ time: 'now', number: 1 }, filters);
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (text: string): object => JSON.parse(Buffer.from(text, 'base64url').toString());

describe('a cursor', () => {
  it('is read back by the list that created it', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 50 }), fc.maxSafeInteger(), (time, number) => {
        const text = formatCursor({ time, number }, filters);
        expect(text).toMatch(/^[\w-]+$/);
        expect(parseCursor(text, place, filters)).toEqual({ time, number });
      }),
    );
  });

  it('is rejected by a list with other filters', () => {
    for (const others of [[], ['a workspace'], ['a workspace', 0], ['another', null], null])
      expect(parseCursor(cursor, place, others)).toBeUndefined();
  });

  it.each([
    '',
    'x',
    encode(null),
    encode([]),
    encode({ ...decode(cursor), more: 1 }),
    encode({ ...decode(cursor), number: '1' }),
    encode({ time: 'now', number: 1 }),
    `${cursor}=`,
    ` ${cursor}`,
    formatCursor({ time: 'x'.repeat(500), number: 1 }, filters),
  ])('is rejected when it is %s', (text) => expect(parseCursor(text, place, filters)).toBeUndefined());
});

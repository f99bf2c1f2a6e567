import { assert, integer, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Cursor,
  type EventFilter,
  formatCursor,
  parseCursor,
} from '../../../src/platform/audit/cursor.ts';

const filter: EventFilter = {
  organizationId: '11111111-1111-4111-8111-111111111111',
  operations: ['login', 'create_role'],
};
const cursor: Cursor = { start: 1000, end: 9000, time: 5000, seq: '42' };
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (text: string): object => JSON.parse(Buffer.from(text, 'base64url').toString());

describe('a cursor', () => {
  it('is read back by the list that created it', () => {
    const time = integer({ min: 0, max: 4_000_000_000_000 });
    assert(
      property(time, time, time, integer({ min: 1 }), (a, b, c, seq) => {
        const [start = 0, at = 0, end = 0] = [a, b, c].toSorted((x, y) => x - y);
        const made = { start, time: at, end, seq: String(seq) };
        expect(parseCursor(formatCursor(made, filter), filter)).toMatchObject(made);
      }),
    );
  });

  it('is read back whatever the order of the operations', () => {
    const reversed = { ...filter, operations: filter.operations?.toReversed() };
    expect(parseCursor(formatCursor(cursor, filter), reversed)).toMatchObject(cursor);
  });

  it.each<Partial<EventFilter>>([
    { organizationId: '22222222-2222-4222-8222-222222222222' },
    { workspaceId: '22222222-2222-4222-8222-222222222222' },
    { operations: ['login'] },
    { operations: undefined },
    { startTime: new Date(0) },
    { endTime: new Date(0) },
  ])('is rejected by a list with %o', (change) =>
    expect(parseCursor(formatCursor(cursor, filter), { ...filter, ...change })).toBeUndefined(),
  );

  it.each([
    '',
    'x',
    encode(null),
    encode({ ...decode(formatCursor(cursor, filter)), extra: 1 }),
    encode({ ...decode(formatCursor(cursor, filter)), seq: '0' }),
    formatCursor({ ...cursor, time: 9001 }, filter),
    formatCursor({ ...cursor, time: 999 }, filter),
    formatCursor({ ...cursor, end: 8.64e15 }, filter),
    `${formatCursor(cursor, filter)}=`,
    'A'.repeat(513),
  ])('is rejected when it is %s', (text) => expect(parseCursor(text, filter)).toBeUndefined());
});

import { describe, expect, it } from 'vitest';
import { z } from '../../../src/base/schema.ts';
import { readQuery } from '../../../src/platform/api/query.ts';

const query = z.strictObject({
  limit: z.int().min(1).default(10),
  is_new: z.boolean().optional(),
  operations: z.array(z.string()).optional(),
  name: z.string().nullable().default(null),
});

describe('a query', () => {
  const rows: readonly (readonly [string, unknown])[] = [
    ['', {}],
    ['limit=5', { limit: 5 }],
    ['limit=-5', { limit: -5 }],
    ['limit=5.5', { limit: '5.5' }],
    ['limit=', { limit: '' }],
    ['limit=1e2', { limit: '1e2' }],
    ['limit=0x10', { limit: '0x10' }],
    ['limit=99999999999999999999', { limit: '99999999999999999999' }],
    ['is_new=true', { is_new: true }],
    ['is_new=0', { is_new: false }],
    ['is_new=yes', { is_new: 'yes' }],
    ['operations=a', { operations: ['a'] }],
    ['operations=a&operations=b&limit=1', { operations: ['a', 'b'], limit: 1 }],
    ['name=a%20b%2B', { name: 'a b+' }],
  ];
  it.each(rows)('%j becomes what the schema asks for', (text, value) => {
    expect(readQuery(new URLSearchParams(text), { query })).toEqual({ value, issues: [] });
  });

  it('that names what the route does not know is an issue each', () => {
    const { issues } = readQuery(new URLSearchParams('limt=5&__proto__=1&constructor=2'), { query });
    expect(issues.map(({ loc, type }) => [loc, type])).toEqual([
      [['query', 'limt'], 'extra_forbidden'],
      [['query', '__proto__'], 'extra_forbidden'],
      [['query', 'constructor'], 'extra_forbidden'],
    ]);
  });

  it('that names what the route does not know is read without it where unknown names pass', () => {
    const search = new URLSearchParams('limit=5&limt=5&__proto__=1&constructor=2&x=1&x=2');
    expect(readQuery(search, { query, unknownNames: 'pass' })).toEqual({ value: { limit: 5 }, issues: [] });
  });

  it('that gives one value twice is an issue, since two readers could take different ones', () => {
    const { value, issues } = readQuery(new URLSearchParams('limit=5&limit=6'), { query });
    expect(issues).toEqual([
      { loc: ['query', 'limit'], msg: 'Send this query parameter once', type: 'value_error' },
    ]);
    expect(value).toEqual({});
  });

  it('is refused whole where the route has none', () => {
    expect(readQuery(new URLSearchParams('a=1'), {}).issues).toHaveLength(1);
  });
});

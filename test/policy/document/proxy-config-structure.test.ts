// What is rejected before the schema reads a document: its size, its nesting, misleading keys and text.
import { describe, expect, it } from 'vitest';
import { findStructureIssues } from '../../../src/policy/document/proxy-config-structure.ts';

const many = <T>(length: number, item: T): T[] => Array.from({ length }, () => item);
const found = (document: unknown): readonly string[] =>
  findStructureIssues(document).map(({ loc, type }) => `${loc.join('.')} ${type}`);

describe('the structure of a document', () => {
  it.each([undefined, null, 7, 'text', [], { rules: [{ match_hosts: many(1000, 'a.test') }] }])(
    'has no issue: %#',
    (document) => expect(found(document)).toEqual([]),
  );

  it.each<[name: string, document: unknown, issues: readonly string[]]>([
    ['half a character', { a: ['\ud800'] }, ['a.0 string_unicode']],
    ['__proto__ as a key', JSON.parse('{"a":{"__proto__":{"b":1}}}'), ['a.__proto__ extra_forbidden']],
    ['half a character in a key', { 'a\udc00': 1 }, ['a\ufffd extra_forbidden']],
    ['a list of 1,001 entries', { a: many(1001, 0) }, ['a too_long']],
    ['more values than any document may have', { a: many(400, many(200, 0)) }, [' too_long']],
    ['11,000 hosts in all', { rules: many(11, { match_hosts: many(1000, 'a') }) }, ['rules too_long']],
    ['1,001 headers in all', { rules: many(13, { headers: many(77, {}) }) }, ['rules too_long']],
  ])('is rejected with %s', (_, document, issues) => expect(found(document)).toEqual(issues));

  it('may have 16 levels and no more', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
    expect(found(nested(16))).toEqual([]);
    expect(found(nested(17))).toHaveLength(1);
  });

  it('is not read past the limit of its values', () => {
    let reads = 0;
    const counted = {
      get b() {
        reads += 1;
        return 1;
      },
    };
    findStructureIssues(many(900, many(900, counted)));
    expect(reads).toBeLessThan(75_001);
  });
});

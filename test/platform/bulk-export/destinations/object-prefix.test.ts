// Prefixes of objects: what could lead out of the prefix of a tenant is refused.
import { describe, expect, it } from 'vitest';
import {
  findPrefixProblem,
  toObjectKey,
} from '../../../../src/platform/bulk-export/destinations/object-prefix.ts';

describe('a prefix', () => {
  it.each([
    '',
    'exports',
    'a/b/c',
    "a!-_.*'()/=z",
    'year=2026/month=01',
    'ends/',
    '.hidden',
    'a'.repeat(2_048),
  ])('%j can be used', (prefix) => {
    expect(findPrefixProblem(prefix)).toBeUndefined();
  });

  it.each([
    ['../up', 'two dots'],
    ['a/../b', 'two dots'],
    ['a..b', 'two dots'],
    ['/a', 'begin with a slash'],
    ['a//b', 'two slashes'],
    ['a b', 'letters, digits'],
    ['a?b', 'letters, digits'],
    ['a#b', 'letters, digits'],
    ['a%2e%2e', 'letters, digits'],
    ['a\\b', 'letters, digits'],
    ['a\r\nb', 'letters, digits'],
    ['a\u0000', 'letters, digits'],
    ['ä', 'letters, digits'],
    ['a'.repeat(2_049), '2048 characters'],
  ])('%j is refused: %s', (prefix, reason) => {
    expect(findPrefixProblem(prefix)).toContain(reason);
  });

  it('is followed by one slash and the name', () => {
    expect(toObjectKey('', 'tmp/x')).toBe('tmp/x');
    expect(toObjectKey('a', 'tmp/x')).toBe('a/tmp/x');
    expect(toObjectKey('a/', 'tmp/x')).toBe('a/tmp/x');
  });
});

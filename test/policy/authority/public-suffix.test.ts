// Which suffixes span many owners: the list's own, and those right above listed names.
import { describe, expect, it } from 'vitest';
import { isPublicSuffix } from '../../../src/policy/authority/public-suffix.ts';

describe('a public suffix', () => {
  const listed = [
    'com',
    'co.uk',
    'github.io',
    'vercel.app',
    'kobe.jp',
    'compute.amazonaws.com',
    's3.amazonaws.com',
    'ck',
  ];
  it.each([...listed, 'dev', 'xn--p1ai'])('%s', (suffix) => expect(isPublicSuffix(suffix)).toBe(true));

  const owned = [
    'example.com',
    'example.co.uk',
    'octocat.github.io',
    'localhost',
    'internal',
    'corp',
    'test',
    'local',
  ];
  it.each([...owned, 'example.localhost', 'svc.cluster.local', 'city.kobe.jp'])('not %s', (suffix) =>
    expect(isPublicSuffix(suffix)).toBe(false),
  );
});

import { describe, expect, it } from 'vitest';
import { findLinkProblem } from '../../../../src/platform/builder/source/link-resolution.ts';

type Links = readonly (readonly [path: string, target: string])[];

describe('links that stay in the tree', () => {
  const rows: readonly Links[] = [
    [],
    [['a', 'b']],
    [['a', '.']],
    [['d/a', '..']],
    [['d/a', '../e/./f//g']],
    [['d/e/a', '../../x']],
    [
      ['a', 'b'],
      ['b', 'c'],
    ],
    [
      ['d/in', 'e/f'],
      ['out', 'd/in/../..'],
    ],
  ];
  it.each(rows.map((links) => ({ links })))('$links', ({ links }) =>
    expect(findLinkProblem(new Map(links))).toBeUndefined(),
  );
});

describe('links that do not', () => {
  const rows: readonly (readonly [reason: string, path: string, links: Links])[] = [
    ['leads outside', 'a', [['a', '..']]],
    ['leads outside', 'd/a', [['d/a', '../..']]],
    ['leads outside', 'a', [['a', 'b/../../c']]],
    ['absolute path', 'a', [['a', '/etc']]],
    [
      'leads outside',
      'out',
      [
        ['d/e/in', '..'],
        ['out', 'd/e/in/../..'],
      ],
    ],
    [
      'leads outside',
      'out',
      [
        ['d/up', '..'],
        ['d/e', 'up/d'],
        ['out', 'd/e/up/../x'],
      ],
    ],
    ['more than 40 others', 'a', [['a', 'a']]],
    [
      'more than 40 others',
      'a',
      [
        ['a', 'b'],
        ['b', 'a/c'],
      ],
    ],
  ];
  it.each(rows)('%s: %s', (reason, path, links) => {
    const problem = findLinkProblem(new Map(links));
    expect(problem?.path).toBe(path);
    expect(problem?.reason).toContain(reason);
  });

  it('are one too many, where to follow them all would take long', () => {
    const links = Array.from({ length: 5_000 }, (_, at) => [`link-${at}`, 'd/'.repeat(200)] as const);
    expect(findLinkProblem(new Map(links))?.reason).toContain('too many');
  });
});

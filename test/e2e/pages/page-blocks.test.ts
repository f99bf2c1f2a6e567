import { describe, expect, it } from 'vitest';
import { missingLine, stepsOf } from './page-blocks.ts';

const page = (...lines: readonly string[]): string => lines.join('\n');

describe('the steps of a page', () => {
  it('are its files and commands, in order', () => {
    const text = page(
      '```json file=a.json',
      '{}',
      '```',
      'text',
      '```console',
      '$ one',
      'out',
      '$ two \\',
      '  more',
      '```',
    );
    expect(stepsOf(text)).toEqual([
      { kind: 'file', line: 2, name: 'a.json', text: '{}\n' },
      { kind: 'command', line: 6, command: 'one', printed: ['out'], isBackground: false },
      { kind: 'command', line: 8, command: 'two \\\n  more', printed: [], isBackground: false },
    ]);
  });

  it('run the last command of a block in the background', () => {
    const steps = stepsOf(page('```console background', '$ one', '$ two', '```'));
    expect(steps.map((step) => step.kind === 'command' && step.isBackground)).toEqual([false, true]);
  });

  it('leave out what a machine may not have', () =>
    expect(stepsOf(page('```console needs=docker', '$ docker run x', '```'))).toEqual([]));

  it.each([
    ['console needs=luck', '$ x', 'unknown word needs'],
    ['console needs', '$ x', 'unknown word needs'],
    ['json background', '{}', 'unknown word background'],
    ['shell', 'x', 'unknown language shell'],
    ['console', 'x', 'begins with "$ "'],
  ])('are none for %s', (info, line, message) =>
    expect(() => stepsOf(page(`\`\`\`${info}`, line, '```'))).toThrow(message),
  );
});

describe('what a page shows as printed', () => {
  it.each([
    ['a\nb\nc', ['a', 'c'], undefined],
    ['a\nb', ['b', 'a'], 'a'],
    ['abc', ['b'], 'b'],
    ['{"a":1,"b":2,"c":3}', ['{ ... "b":2 ... }'], undefined],
    ['{"a":1,"c":3}', ['{ ... "b":2 ... }'], '{ ... "b":2 ... }'],
    ['', ['...'], undefined],
    ['a.c', ['a.c'], undefined],
    ['abc', ['a.c'], 'a.c'],
  ] as const)('of %j, %j: %j', (output, printed, missing) =>
    expect(missingLine(output, printed)).toBe(missing),
  );
});

// Lines for a terminal, which obeys what an author may have put into a key.
import { expect, it } from 'vitest';
import { formatIssues } from '../../src/cli/issue-lines.ts';

it.each<[name: string, loc: readonly (string | number)[], line: string]>([
  ['a path', ['rules', 0, 'headers', 1, 'value'], 'rules[0].headers[1].value: m'],
  ['no path', [], 'm'],
  ['a key with a terminal’s escape', ['a\x1b[2J'], String.raw`a\u001b[2J: m`],
  ['a key with a line break', ['a\nb\r'], String.raw`a\u000ab\u000d: m`],
  ['a key with C1 controls', ['a\x9b2Jb\x7f'], String.raw`a\u009b2Jb\u007f: m`],
  ['a key that turns the line around', ['a\u202eb\u2066'], String.raw`a\u202eb\u2066: m`],
  ['a key with line separators', ['a\u2028b\u2029'], String.raw`a\u2028b\u2029: m`],
  ['a key in another script', ['ключ é 😀'], 'ключ é 😀: m'],
])('%s', (_, loc, line) => {
  expect(formatIssues('f', [{ loc, msg: 'm', type: 'value_error' }])).toBe(`f: ${line}\n`);
});

it('a message is escaped too', () => {
  expect(formatIssues('f', [{ loc: [], msg: 'a\x1bb', type: 'value_error' }])).toBe('f: a\\u001bb\n');
});

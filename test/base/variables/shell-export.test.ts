import { expect, it } from 'vitest';
import { shellExport, shellQuote, shellWord } from '../../../src/base/variables/shell-export.ts';

it.each([
  ['x', "'x'"],
  ['', "''"],
  ["it's $(id) `id`\n\\", "'it'\\''s $(id) `id`\n\\'"],
])('a shell reads %j as a value', (value, quoted) => {
  expect(shellQuote(value)).toBe(quoted);
  expect(shellExport('A', value)).toBe(`export A=${quoted}\n`);
});

it.each([
  ['/tmp/state/ca.pem', '/tmp/state/ca.pem'],
  ['/my files/ca.pem', "'/my files/ca.pem'"],
  ['$(id)', "'$(id)'"],
  ['', "''"],
])('%j is one word of a command: %s', (value, word) => expect(shellWord(value)).toBe(word));

import { expect, it } from 'vitest';
import { shellExport, shellQuote } from '../../src/base/shell-export.ts';

it.each([
  ['x', "'x'"],
  ['', "''"],
  ["it's $(id) `id`\n\\", "'it'\\''s $(id) `id`\n\\'"],
])('a shell reads %j as a value', (value, quoted) => {
  expect(shellQuote(value)).toBe(quoted);
  expect(shellExport('A', value)).toBe(`export A=${quoted}\n`);
});

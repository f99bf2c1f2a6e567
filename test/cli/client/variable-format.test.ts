import { expect, it } from 'vitest';
import { formatVariables, parseVariableFormat } from '../../../src/cli/client/variable-format.ts';

const variables = { A: 'x y', QUOTE: `it's`, BOTH: `it's "$(id)"`, LINES: 'a\nb', EMPTY: '' };

it.each([
  [
    'sh',
    `export A='x y'\nexport QUOTE='it'\\''s'\nexport BOTH='it'\\''s "$(id)"'\nexport LINES='a\nb'\nexport EMPTY=''\n`,
    [],
  ],
  ['dotenv', `A='x y'\nQUOTE="it's"\nEMPTY=''\n`, ['BOTH', 'LINES']],
  ['docker', `A=x y\nQUOTE=it's\nBOTH=it's "$(id)"\nEMPTY=\n`, ['LINES']],
  ['json', `${JSON.stringify(variables, null, 2)}\n`, []],
] as const)('as %s: each value reads back as it is, or is left out by name', (format, text, omitted) => {
  expect(formatVariables(variables, format)).toEqual({ text, omitted });
});

it('sh is the default, and another word is refused with the list', () => {
  expect(parseVariableFormat(undefined)).toBe('sh');
  expect(parseVariableFormat('docker')).toBe('docker');
  expect(() => parseVariableFormat('fish')).toThrow(/--format must be one of sh, dotenv, json, docker/);
});

import { expect, it } from 'vitest';
import { parseEnvFile } from '../../../src/base/variables/env-file.ts';

it.each<[string, string]>([
  ['A=a#b', 'a#b'],
  ['A=a # b', 'a'],
  ['A= # b', ''],
  ['export A = a b \r', 'a b'],
  ['A="a # b" # c', 'a # b'],
  [`A='a\\nb'`, 'a\\nb'],
  ['A="a\\nb"', 'a\nb'],
  ['A="a\nb=c"', 'a\nb=c'],
])('%j is %j', (text, A) =>
  expect(parseEnvFile(`# comment\n\n${text}\nZ=1`)).toEqual({ values: { A, Z: '1' } }),
);

it.each<[string, number, string]>([
  ['A=1\nsk-secret', 2, 'must be NAME=value'],
  ['\n1A=sk-secret', 2, 'must be NAME=value'],
  ['A="sk-secret\nB=1', 1, 'the value of A has no closing "'],
  ['A="a" sk-secret', 1, 'the value of A goes on after the closing "'],
])('%j is an error that does not show the line', (text, line, msg) => {
  expect(parseEnvFile(text)).toEqual({ line, msg: expect.stringContaining(msg) });
  expect(JSON.stringify(parseEnvFile(text))).not.toContain('sk-secret');
});

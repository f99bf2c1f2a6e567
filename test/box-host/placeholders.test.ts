// The placeholders of the rules of a box: those of enabled rules, the first of a name.
import { expect, it } from 'vitest';
import { placeholdersOf } from '../../src/box-host/placeholders.ts';

it('are those of enabled rules, the first of a name', () => {
  const rules = [
    { env_vars: { OPENAI_API_KEY: 'first', A_KEY: 'a' } },
    { enabled: false, env_vars: { B_KEY: 'b' } },
    { env_vars: { OPENAI_API_KEY: 'second', C_KEY: 'c' } },
    {},
  ];
  const placeholders = placeholdersOf({ version: 1, document: { rules }, secrets: {} });
  expect(placeholders).toEqual({ OPENAI_API_KEY: 'first', A_KEY: 'a', C_KEY: 'c' });
  expect(placeholdersOf({ version: 1, document: {}, secrets: {} })).toEqual({});
});

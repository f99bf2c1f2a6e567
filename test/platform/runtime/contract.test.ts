import { expect, it } from 'vitest';
import { RuntimeError } from '../../../src/platform/runtime/contract.ts';

it('an error of the runtime has a kind, a message for users, and the issues of a policy', () => {
  const issue = { loc: ['rules', 0], msg: 'Input must be an object', type: 'dict_type' } as const;
  const error = new RuntimeError('invalid_policy', 'The rules were rejected', [issue]);
  expect([error.kind, error.message, error.issues]).toEqual([
    'invalid_policy',
    'The rules were rejected',
    [issue],
  ]);
  expect(new RuntimeError('failed', 'x').issues).toEqual([]);
});

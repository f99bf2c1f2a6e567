import { expect, it } from 'vitest';
import { parseWith } from '../../../../src/base/schema.ts';
import { newFeedback } from '../../../../src/platform/traces/feedback/feedback-schema.ts';

it('what is wrong with feedback says what was expected', () => {
  const given = { run_id: 'one', key: 'quality', score: 'bad' };
  const parsed = parseWith(newFeedback, given);
  expect(parsed.ok ? [] : parsed.issues.map(({ loc, msg }) => [...loc, msg])).toEqual([
    ['run_id', 'Input must be a UUID'],
    ['score', 'Input must be a number, true or false'],
  ]);
});

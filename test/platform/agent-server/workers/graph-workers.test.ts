import { expect, it } from 'vitest';
import { cancelReasonOf } from '../../../../src/platform/agent-server/workers/graph-workers.ts';

it.each([
  ['rollback', 'rollback'],
  ['interrupt', 'interrupt'],
  [undefined, 'lost'],
  [new Error('left'), 'lost'],
])('the reason of a signal: %s', (reason, expected) =>
  expect(cancelReasonOf(AbortSignal.abort(reason))).toBe(expected),
);

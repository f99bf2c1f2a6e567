import { expect, it } from 'vitest';
import { CallCancelled, LoadError, Refusal } from '../../src/agent-worker/method.ts';

it('what ends a call is known by its class', () => {
  expect(new CallCancelled('timeout')).toMatchObject({ reason: 'timeout', name: 'CallCancelled' });
  expect(new Refusal('invalid', 'no')).toMatchObject({ code: 'invalid', message: 'no' });
  expect(new LoadError('graphs.agent', 'no')).toMatchObject({ key: 'graphs.agent', message: 'no' });
});

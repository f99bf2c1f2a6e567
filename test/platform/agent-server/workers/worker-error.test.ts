import { expect, it } from 'vitest';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';

it('without a response may be tried again', () => {
  const error = new WorkerError('lost');
  expect(error).toMatchObject({ kind: 'lost', isRetryable: true, message: 'The worker has ended' });
  expect([error.thrown, error.code, error.reason]).toEqual([undefined, undefined, undefined]);
});

it('of code of the deployment has its class, and what a handler gave', () => {
  const failure = {
    kind: 'thrown',
    error: 'HTTPException',
    message: 'no',
    status: 401,
    headers: { a: 'b' },
  } as const;
  const error = new WorkerError(failure);
  expect(error).toMatchObject({ kind: 'thrown', isRetryable: false, message: 'no', code: undefined });
  expect(error.thrown).toMatchObject({ error: 'HTTPException', status: 401, headers: { a: 'b' } });
});

it('of a refusal has its code', () =>
  expect(
    new WorkerError({ kind: 'refused', code: 'not_found', message: 'no such checkpoint' }),
  ).toMatchObject({
    kind: 'refused',
    code: 'not_found',
    isRetryable: false,
  }));

it('of a cancelled call has the reason', () =>
  expect(new WorkerError({ kind: 'cancelled', reason: 'rollback' })).toMatchObject({
    kind: 'cancelled',
    reason: 'rollback',
    message: 'The call was cancelled (rollback)',
  }));

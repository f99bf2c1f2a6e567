// A place is given back once, and starts nothing after that.
import { expect, it } from 'vitest';
import type { Claim } from '../../../../src/platform/agent-server/queue/claims.ts';
import { createReservedPlace } from '../../../../src/platform/agent-server/queue/reserved-place.ts';

it('is given back once, and starts nothing after that', () => {
  const seen: string[] = [];
  const place = createReservedPlace({
    owner: 'one',
    onStart: ({ run_id: runId }) => void seen.push(`start ${runId}`),
    onRelease: () => void seen.push('release'),
  });
  const known = { user: { headers: {} }, latest: null };
  place.start({ run_id: 'a' } as Claim, known);
  place.release();
  place.release();
  expect(() => place.start({ run_id: 'b' } as Claim, known)).toThrow('released');
  expect([place.owner, seen]).toEqual(['one', ['start a', 'release']]);
});

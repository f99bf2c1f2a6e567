import { expect, it } from 'vitest';
import { within } from '../../../src/box-host/bubblewrap/time-limit.ts';

it('what takes too long is an error that says so', async () => {
  await expect(within(new Promise(() => undefined), 1, 'it hangs')).rejects.toThrow(
    'it hangs (within 0.001 s)',
  );
  expect(await within(Promise.resolve(3), 60_000, 'it hangs')).toBe(3);
  await expect(within(Promise.reject(new Error('own')), 60_000, 'it hangs')).rejects.toThrow('own');
});

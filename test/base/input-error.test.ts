// Which errors are the operator's input, and which stay errors of the machine or bugs.
import { expect, it } from 'vitest';
import { InputError, readInput } from '../../src/base/input-error.ts';

it('a plain Error becomes an InputError with the same message and the error as its cause', async () => {
  const cause = new Error('state.key: mode 0644');
  const read = readInput(() => Promise.reject(cause));
  await expect(read).rejects.toBeInstanceOf(InputError);
  await expect(read).rejects.toMatchObject({ name: 'InputError', message: cause.message, cause });
});

it('a bug stays what it is', async () => {
  const bug = new TypeError('undefined is not a function');
  await expect(
    readInput(() => {
      throw bug;
    }),
  ).rejects.toBe(bug);
});

it('what is read is returned', async () => {
  expect(await readInput(() => 7)).toBe(7);
});

import { describe, expect, it } from 'vitest';
import { describeUncaught } from '../../src/agent-worker/uncaught.ts';

const SECRET = 'sk-of-a-user';

class ClientError extends Error {
  readonly config = { headers: { authorization: `Bearer ${SECRET}` } };
}

describe('an error that nobody caught', () => {
  it('is its class and where it was thrown, without its message and its members', () => {
    const line = describeUncaught(new ClientError(`no\n    at ${SECRET}`, { cause: new Error(SECRET) }));
    expect(line).toMatch(/^ClientError at .*uncaught\.test\.ts/);
    expect(line).not.toContain(SECRET);
    expect(line).not.toContain('\n');
    expect(describeUncaught(new TypeError('x'))).toMatch(/^TypeError at /);
  });

  it.each([
    ['text', SECRET, 'string'],
    ['an object', { authorization: SECRET }, 'object'],
    ['nothing', undefined, 'undefined'],
    ['a name that is none', Object.assign(new Error('x'), { name: `${SECRET} x`, stack: SECRET }), 'Error'],
    [
      'a stack without its message',
      Object.assign(new Error('x'), { message: 'y', stack: `x\n at ${SECRET}` }),
      'Error',
    ],
  ])('%s', (_, reason, line) => {
    expect(describeUncaught(reason)).toBe(line);
  });

  it('is bounded', () => {
    const deep = (left: number): Error => (left === 0 ? new Error('x'.repeat(100_000)) : deep(left - 1));
    expect(describeUncaught(deep(50)).length).toBeLessThan(3_000);
  });
});

import { describe, expect, it } from 'vitest';
import { describeEnd } from '../../src/workload/workload.ts';

describe('the end of a workload', () => {
  const limits = { memBytes: 512 * 1024 ** 2, diskBytes: 4 * 1024 ** 3, pids: 100 };
  const cases = [
    [{ code: 1, signal: null }, 'it ended with code 1'],
    [{ code: null, signal: 'SIGSEGV' }, 'it was ended by SIGSEGV'],
    [{ code: null, signal: 'SIGKILL', reason: 'memory' }, 'it used more memory than 512 MiB'],
    [{ code: null, signal: 'SIGKILL', reason: 'disk' }, 'it wrote more files than 4096 MiB'],
    [{ code: null, signal: 'SIGKILL', reason: 'processes' }, 'it started more than 100 processes'],
    [{ code: null, signal: 'SIGKILL', reason: 'timeout' }, 'it took longer than allowed'],
    [{ code: 0, signal: null, reason: 'stopped' }, 'it was stopped'],
  ] as const;
  it.each(cases)('%o is described as: %s', (end, text) => expect(describeEnd(end, limits)).toBe(text));

  it('names no limit that was not given', () =>
    expect(describeEnd({ code: 1, signal: null, reason: 'memory' }, {})).toBe(
      'it used more memory than is allowed',
    ));
});

import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { retryRolledBack } from '../../../src/platform/store/transaction-retries.ts';

const withCode = (code: string): Error => Object.assign(new Error('rolled back'), { code });

describe('a transaction', () => {
  it.each(['40001', '40P01'])('that was rolled back with %s is repeated, up to five times', async (code) => {
    let attempts = 0;
    const run = async (rolledBack: number): Promise<string> => {
      attempts += 1;
      if (attempts <= rolledBack) throw withCode(code);
      return 'committed';
    };
    expect(await retryRolledBack(() => run(4))).toBe('committed');
    attempts = 0;
    const failed: unknown = await retryRolledBack(() => run(5)).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(DomainError);
    expect(failed).toMatchObject({ kind: 'unavailable', retryMs: 1_000, cause: withCode(code) });
    expect(attempts).toBe(5);
  });

  it('with any other error is not repeated', async () => {
    let attempts = 0;
    const run = async (): Promise<never> => {
      attempts += 1;
      throw withCode('23505');
    };
    await expect(retryRolledBack(run)).rejects.toMatchObject({ code: '23505' });
    expect(attempts).toBe(1);
  });
});

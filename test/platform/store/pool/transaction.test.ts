import { describe, expect, it } from 'vitest';
import {
  runTransaction,
  type TransactionalConnection,
} from '../../../../src/platform/store/pool/transaction.ts';
import type { ConnectionProvider, DatabaseConnection } from '../../../../src/platform/store/sql.ts';

function createConnection(fails: readonly string[] = []) {
  const seen: string[] = [];
  const step = (name: string) => async (): Promise<void> => {
    seen.push(name);
    if (fails.includes(name)) throw new Error(name);
  };
  const ends = { begin: step('begin'), commit: step('commit'), rollback: step('rollback') };
  return { seen, connection: ends as unknown as TransactionalConnection };
}

const nothing = async (): Promise<void> => undefined;

describe('a transaction', () => {
  it('is committed with the result of its work', async () => {
    const { seen, connection } = createConnection();
    expect(await runTransaction(connection, async () => seen.push('work'))).toBe(2);
    expect(seen).toEqual(['begin', 'work', 'commit']);
  });

  it.each([
    ['its work', async () => Promise.reject(new Error('work')), [] as string[], ['begin', 'rollback']],
    ['its commit', nothing, ['commit'], ['begin', 'commit', 'rollback']],
  ])('is rolled back where %s fails', async (_, work, fails, steps) => {
    const { seen, connection } = createConnection(fails);
    await expect(runTransaction(connection, work)).rejects.toThrow(fails[0] ?? 'work');
    expect(seen).toEqual(steps);
  });

  it('that cannot be rolled back rejects with what its work failed with', async () => {
    const { seen, connection } = createConnection(['rollback']);
    const work = async (): Promise<never> => Promise.reject(new Error('work'));
    await expect(runTransaction(connection, work)).rejects.toThrow('work');
    expect(seen).toEqual(['begin', 'rollback']);
  });

  it('runs one statement at a time, also after one that failed', async () => {
    const { connection } = createConnection();
    const [first, seen] = [Promise.withResolvers<never>(), [] as string[]];
    await runTransaction(connection, async (own) => {
      const failing = own.provideConnection(() => first.promise);
      const next = own.provideConnection(async () => void seen.push('next'));
      await Promise.resolve();
      expect(seen).toEqual([]);
      first.reject(new Error('first'));
      await expect(failing).rejects.toThrow('first');
      await next;
    });
    expect(seen).toEqual(['next']);
  });

  it.each([
    ['its commit', nothing],
    ['its rollback', async () => Promise.reject(new Error('work'))],
  ])('has no statement after %s: the connection is somebody else’s', async (_, work) => {
    const { connection } = createConnection();
    let kept: ConnectionProvider | undefined;
    await runTransaction(connection, async (own) => {
      kept = own;
      await work();
    }).catch(() => undefined);
    const used: DatabaseConnection[] = [];
    const late = kept?.provideConnection(async (one) => void used.push(one));
    await expect(late).rejects.toThrow('the transaction has ended');
    expect(used).toEqual([]);
  });
});

// The master keys are read once in a while, by all who need them, and again at once where that failed.
import { expect, it } from 'vitest';
import { createPreparedVault } from '../../../../src/platform/agent-server/access/prepared-vault.ts';
import type { Vault } from '../../../../src/platform/vault/vault.ts';

it('is prepared once for all who come in time, and again after that or after a failure', async () => {
  let nowMs = 0;
  let reads = 0;
  let failure: Error | undefined;
  const vault = {
    async prepare() {
      reads += 1;
      if (failure !== undefined) throw failure;
    },
  } as Pick<Vault, 'prepare' | 'seal'>;
  const prepared = createPreparedVault(vault, 1_000, () => nowMs);
  await Promise.all([prepared.prepare(), prepared.prepare()]);
  nowMs = 999;
  await prepared.prepare();
  expect(reads).toBe(1);
  nowMs = 1_000;
  failure = new Error('the file is gone');
  await expect(prepared.prepare()).rejects.toThrow('gone');
  failure = undefined;
  await prepared.prepare();
  expect(reads).toBe(3);
});

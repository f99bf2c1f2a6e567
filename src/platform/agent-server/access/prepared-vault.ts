// The vault as runs use it, which are created many times a second: the file with the master keys is read once a second at most. A
// key that another process has put there meanwhile is found all the same, because the vault looks for a key that it does not know.
import type { Vault } from '../../vault/vault.ts';

const FRESH_MS = 1_000;

export function createPreparedVault(
  vault: Pick<Vault, 'prepare' | 'seal'>,
  freshMs: number = FRESH_MS,
  now: () => number = () => performance.now(),
): Pick<Vault, 'prepare' | 'seal'> {
  let preparing: Promise<void> | undefined;
  let untilMs = 0;
  return {
    seal: (...given) => vault.seal(...given),
    prepare() {
      if (preparing !== undefined && now() < untilMs) return preparing;
      const prepared = vault.prepare();
      preparing = prepared;
      untilMs = now() + freshMs;
      // A failure is that of the callers who wait for it.
      prepared.catch(() => {
        if (preparing === prepared) preparing = undefined;
      });
      return prepared;
    },
  };
}

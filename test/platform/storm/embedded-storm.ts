// One platform process with an embedded database server, killed again and again while clients write. Acknowledged writes
// must be stored, no server may be left behind, and no two may run at once.
import { join } from 'node:path';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { openPostgres } from '../../../src/platform/store/embedded/postgres-server.ts';
import { createRandom } from '../../http1/mutation.ts';
import { initPlatform } from '../../support/platform-process.ts';
import { openEmbeddedMonitor } from './embedded-monitor.ts';
import { checkStorm, type Snapshot } from './storm-checks.ts';
import { createLedger } from './storm-ledger.ts';
import { type LoadOptions, runLoad } from './storm-load.ts';
import { openStormProcess } from './storm-process.ts';
import { takeSnapshot } from './storm-snapshot.ts';
import { verifyStorm } from './storm-verification.ts';
import type { StormResult } from './storm.ts';

export type EmbeddedStormOptions = Pick<
  LoadOptions,
  'kills' | 'clients' | 'responsesBetweenKills' | 'onKill'
> & {
  /** The data directory, which does not exist yet. */
  readonly directory: string;
  readonly seed: number;
};

export async function runEmbeddedStorm(
  options: EmbeddedStormOptions,
): Promise<Omit<StormResult, 'rerunsMs'>> {
  const { seed, directory } = options;
  const ledger = createLedger();
  const common = {
    dataDirectory: directory,
    env: { SALLYPORT_PLATFORM_AUDIT_CHECKPOINT_INTERVAL_MS: '1000' },
  };
  const { text: key } = mintKey('service');
  await initPlatform(common, key);
  const monitor = openEmbeddedMonitor(directory);
  await using process = openStormProcess({ ...common, name: 'e', monitor, onRecord: () => undefined });
  const busyMs = await runLoad({ ...options, processes: [process], ledger, random: createRandom(seed), key });
  await process.end();
  const verified = await verifyStorm(common);
  const snapshot = await readDirectory(directory);
  const left = await monitor.backendsOf('');
  return {
    errors: [
      ...process.errors,
      ...checkStorm(ledger, snapshot),
      ...verified.errors,
      ...(monitor.most > 1 ? [`${monitor.most} servers ran on one directory`] : []),
      ...(left.length > 0 ? [`the servers ${left.join(', ')} still run`] : []),
    ],
    ledger,
    startsMs: process.startsMs,
    cleanupsMs: process.cleanupsMs,
    events: snapshot.events.length,
    verified: verified.reported,
    busyMs,
  };
}

async function readDirectory(directory: string): Promise<Snapshot> {
  const server = await openPostgres({
    directory: join(directory, 'database'),
    log: { info: () => undefined, warn: () => undefined },
  });
  try {
    return await takeSnapshot(server.ownerConnection);
  } finally {
    await server.close();
  }
}

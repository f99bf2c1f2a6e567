// One platform process with a database server of its own, killed again and again while clients write. What was answered
// must be there afterwards, and no server may be left behind or run beside another.
import { join } from 'node:path';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { openPostgres } from '../../../src/platform/store/embedded/postgres-server.ts';
import { createRandom } from '../../http1/mutation.ts';
import { initPlatform } from '../../support/platform-process.ts';
import { openEmbeddedMonitor } from './embedded-monitor.ts';
import { judgeStorm, type Snapshot } from './storm-checks.ts';
import { createLedger } from './storm-ledger.ts';
import { type LoadOptions, runLoad } from './storm-load.ts';
import { openStormPlace } from './storm-place.ts';
import { takeSnapshot } from './storm-snapshot.ts';
import { verifyStorm } from './storm-verification.ts';
import type { StormResult } from './storm.ts';

export type EmbeddedStormOptions = Pick<LoadOptions, 'kills' | 'clients' | 'calm' | 'onKill'> & {
  /** The data directory, which is not there yet. */
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
  await using place = openStormPlace({ ...common, name: 'e', monitor, onRecord: () => undefined });
  const busyMs = await runLoad({ ...options, places: [place], ledger, random: createRandom(seed), key });
  await place.end();
  const verified = await verifyStorm(common);
  const snapshot = await readDirectory(directory);
  const left = await monitor.backendsOf('');
  return {
    errors: [
      ...place.errors,
      ...judgeStorm(ledger, snapshot),
      ...verified.errors,
      ...(monitor.most > 1 ? [`${monitor.most} servers ran on one directory`] : []),
      ...(left.length > 0 ? [`the servers ${left.join(', ')} are left`] : []),
    ],
    ledger,
    startsMs: place.startsMs,
    gonesMs: place.gonesMs,
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

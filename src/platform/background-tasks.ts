// What the platform does by the clock: what is too old is removed, once among all processes on a database; where the
// audit chains stand is signed and written outside the database, by each process.
import type { KeyObject } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeBug, type Log } from '../base/log.ts';
import { type CheckpointSink, openCheckpointSink } from './audit/checkpoint-sink.ts';
import { writeCheckpoints } from './audit/checkpointing.ts';
import { expireEvents } from './audit/retention.ts';
import { openSigningKey } from './audit/signing-key.ts';
import type { PlatformConfig } from './config.ts';
import { RECORD_RETENTION_MS, expireRecords } from './sandbox-records/records.ts';
import type { Storage } from './storage.ts';
import type { Store } from './store/database.ts';
import type { Jobs } from './store/jobs.ts';

export type BackgroundTasks = {
  /** Lets jobs end, then writes the last checkpoints. */
  close(): Promise<void>;
};

export async function startBackgroundTasks(
  { audit }: Pick<PlatformConfig, 'audit'>,
  { storage, log }: { readonly storage: Storage; readonly log: Log },
): Promise<BackgroundTasks> {
  await mkdir(dirname(audit.keyFile), { recursive: true, mode: 0o700 });
  const key = await openSigningKey(audit.keyFile);
  const jobs = await storage.openJobs();
  await startExpiry(jobs, storage.store, log);
  const checkpoints = startCheckpoints({
    store: storage.store,
    sink: openCheckpointSink(audit.checkpoints),
    key,
    everyMs: audit.checkpointIntervalMs,
    log,
  });
  return {
    async close() {
      await jobs.close();
      await checkpoints.close();
    },
  };
}

/** At night in UTC; which of the processes does it is pg-boss's affair. */
async function startExpiry(jobs: Jobs, store: Store, log: Log): Promise<void> {
  await jobs.work('expire-audit-events', async () => {
    log.info({ removed: await expireEvents(store, new Date()) }, 'audit events expired');
  });
  await jobs.work('expire-sandbox-records', async () => {
    const olderThan = new Date(Date.now() - RECORD_RETENTION_MS);
    log.info({ removed: await expireRecords(store, olderThan) }, 'records of sandboxes expired');
  });
  await jobs.schedule('expire-audit-events', '17 3 * * *');
  await jobs.schedule('expire-sandbox-records', '47 3 * * *');
}

/** The next one is begun when the last has ended, so that a slow place holds up nobody else. */
function startCheckpoints({
  store,
  sink,
  key,
  everyMs,
  log,
}: {
  readonly store: Store;
  readonly sink: CheckpointSink;
  readonly key: KeyObject;
  readonly everyMs: number;
  readonly log: Log;
}): BackgroundTasks {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosing = false;
  const write = async (): Promise<void> => {
    try {
      await writeCheckpoints(store, sink, key);
    } catch (error) {
      log.error(describeBug(error), 'checkpoints were not written; they will be with the next');
    }
  };
  const plan = (): void => {
    if (isClosing) return;
    timer = setTimeout(() => {
      running = write().then(plan);
    }, everyMs);
    timer.unref();
  };
  plan();
  return {
    async close() {
      isClosing = true;
      clearTimeout(timer);
      await running;
      await write();
    },
  };
}

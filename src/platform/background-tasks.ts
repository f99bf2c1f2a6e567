// Background tasks: nightly expiry, once per database, and signed audit checkpoints, in every process.
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeBug, type Log } from '../base/log.ts';
import { openCheckpointSink } from './audit/checkpoint-sink.ts';
import { writeCheckpoints } from './audit/checkpointing.ts';
import { expireEvents } from './audit/retention.ts';
import { openSigningKey } from './audit/signing-key.ts';
import type { PlatformConfig } from './config.ts';
import { RECORD_RETENTION_MS, expireRecords } from './sandbox-records/records.ts';
import type { Storage } from './storage.ts';
import type { Store } from './store/database.ts';
import type { Jobs } from './store/jobs.ts';

export type BackgroundTasks = {
  /** Waits for running jobs, then writes the last checkpoints. */
  close(): Promise<void>;
};

export async function startBackgroundTasks(
  { audit }: Pick<PlatformConfig, 'audit'>,
  { storage, log }: { readonly storage: Storage; readonly log: Log },
): Promise<BackgroundTasks> {
  const store = storage.pools.long;
  await mkdir(dirname(audit.keyFile), { recursive: true, mode: 0o700 });
  const key = await openSigningKey(audit.keyFile);
  const jobs = await storage.openJobs();
  await startExpiry(jobs, store, log);
  const sink = openCheckpointSink(audit.checkpoints);
  const write = (): Promise<unknown> => writeCheckpoints(store, sink, key);
  const checkpoints = startCheckpoints(write, audit.checkpointIntervalMs, log);
  return {
    async close() {
      await jobs.close();
      await checkpoints.close();
    },
  };
}

/** At night in UTC. pg-boss chooses the process that runs a job. */
async function startExpiry(jobs: Jobs, store: Store, log: Log): Promise<void> {
  await jobs.work('expire-audit-events', async () => {
    log.info({ removed: await expireEvents(store, new Date()) }, 'audit events expired');
  });
  await jobs.work('expire-sandbox-records', async () => {
    const olderThan = new Date(Date.now() - RECORD_RETENTION_MS);
    log.info({ removed: await expireRecords(store, olderThan) }, 'sandbox records expired');
  });
  await jobs.schedule('expire-audit-events', '17 3 * * *');
  await jobs.schedule('expire-sandbox-records', '47 3 * * *');
}

/** The interval runs from the end of one write to the start of the next, so that a slow sink is never written twice at once. */
function startCheckpoints(write: () => Promise<unknown>, intervalMs: number, log: Log): BackgroundTasks {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosing = false;
  const attempt = async (): Promise<void> => {
    try {
      await write();
    } catch (error) {
      log.error(describeBug(error), 'checkpoints were not written; the next attempt includes them');
    }
  };
  const schedule = (): void => {
    if (isClosing) return;
    timer = setTimeout(() => {
      running = attempt().then(schedule);
    }, intervalMs);
    timer.unref();
  };
  schedule();
  return {
    async close() {
      isClosing = true;
      clearTimeout(timer);
      await running;
      await attempt();
    },
  };
}

// What the platform does by the clock, once among all processes on a database: what is too old is removed.
import type { Log } from '../base/log.ts';
import type { PlatformConfig } from './config.ts';
import { RECORDS_KEPT_MS, expireRecords } from './sandbox-records/records.ts';
import type { Storage } from './storage.ts';

export type Chores = { close(): Promise<void> };

export async function startChores(
  _config: PlatformConfig,
  { storage, log }: { readonly storage: Storage; readonly log: Log },
): Promise<Chores> {
  const jobs = await storage.openJobs();
  await jobs.work('expire-sandbox-records', async () => {
    const removed = await expireRecords(storage.store, new Date(Date.now() - RECORDS_KEPT_MS));
    log.info({ removed }, 'records of sandboxes expired');
  });
  await jobs.schedule('expire-sandbox-records', '17 3 * * *');
  return { close: () => jobs.close() };
}

// The background work of the audit log: nightly expiry, once per database, and signed checkpoints, in every process that
// works.
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeBug, type Log } from '../../base/log.ts';
import { openCheckpointSink } from '../audit/checkpoint-sink.ts';
import { writeCheckpoints } from '../audit/checkpointing.ts';
import { openSigningKey } from '../audit/signing-key.ts';
import type { Module, RunningPart, StartContext } from '../module.ts';
import { expireAuditEvents } from './event-expiry.ts';

export const auditMaintenance: Module = {
  name: 'audit-maintenance',
  jobs: [expireAuditEvents],
  start: async (context) => (context.roles.works ? startSigning(context) : undefined),
};

/** A process that only serves needs no signing key. */
async function startSigning({ config: { audit }, store, log }: StartContext): Promise<RunningPart> {
  await mkdir(dirname(audit.keyFile), { recursive: true, mode: 0o700 });
  const key = await openSigningKey(audit.keyFile);
  const sink = openCheckpointSink(audit.checkpoints);
  const write = (): Promise<unknown> => writeCheckpoints(store, sink, key);
  return startCheckpoints(write, audit.checkpointIntervalMs, log);
}

/** The interval runs from the end of one write to the start of the next, so that a slow sink is never written twice at once. */
function startCheckpoints(write: () => Promise<unknown>, intervalMs: number, log: Log): RunningPart {
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
    // The last checkpoints cover the events of the requests and jobs that have just ended.
    async close() {
      isClosing = true;
      clearTimeout(timer);
      await running;
      await attempt();
    },
  };
}

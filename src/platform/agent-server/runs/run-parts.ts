// What the routes of runs are made with, and what they share: the ids of a path, where a run is found, who may see it.
import type { Log } from '../../../base/log.ts';
import { z } from '../../../base/schema.ts';
import type { Store } from '../../store/database.ts';
import type { Vault } from '../../vault/vault.ts';
import type { Gate } from '../access/gate.ts';
import type { Deployment } from '../configuration/deployment.ts';
import type { Backlog } from '../queue/backlog.ts';
import type { RunQueue } from '../queue/run-queue.ts';
import type { RunNotices } from '../streams/run-notices.ts';
import type { RunStreams } from '../streams/run-streams.ts';

export type RunRouteParts = {
  readonly gate: Gate;
  readonly queue: RunQueue;
  readonly backlog: Pick<Backlog, 'requirePlace'>;
  readonly streams: Pick<RunStreams, 'processId' | 'read' | 'ended'>;
  readonly notices: Pick<RunNotices, 'send'>;
  readonly vault: Pick<Vault, 'prepare' | 'seal'>;
  /** For what follows a client that leaves. */
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
  /** Of one thread that wait; absent: any number. */
  readonly threadPendingRuns?: number;
  readonly deployment: Pick<Deployment, 'graphs' | 'defaultConfigs'>;
};

const id = z.guid().toLowerCase();
export const ofThread = z.strictObject({ thread_id: id });
export const ofRun = z.strictObject({ run_id: id });
export const ofThreadRun = z.strictObject({ thread_id: id, run_id: id });
export const uuid = id;

/** Without the audit log, which is that of the platform. */
export const UNTRACKED = { untracked: 'runs of a deployment are no resources of the platform' } as const;

export type RunPlace = { readonly threadId: string; readonly runId: string };

/**
 * As clients find a run that they have created: the SDKs read both ids from it, and append it to the address of the server, so that
 * no prefix is part of it.
 */
export function locationOf({ threadId, runId }: RunPlace, isStateless: boolean): string {
  return isStateless ? `/runs/${runId}` : `/threads/${threadId}/runs/${runId}`;
}

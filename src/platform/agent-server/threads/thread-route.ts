// What the routes of threads have in common: their parts, their parameters and limits, and how a thread is found that the caller may see.
import { DomainError } from '../../../base/domain-error.ts';
import { pathToUnstorable } from '../../../base/json/storable-text.ts';
import { z } from '../../../base/schema.ts';
import type { Store } from '../../store/database.ts';
import type { Gate } from '../access/gate.ts';
import type { Deployment } from '../configuration/deployment.ts';
import type { RunNotice } from '../streams/run-notices.ts';
import type { StateUpdates } from '../streams/state-updates.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { requireSmallMetadata } from '../metadata.ts';
import { THREAD_STATUSES } from './thread-rows.ts';

export type ThreadParts = {
  readonly gate: Gate;
  readonly deployment: Pick<Deployment, 'graphs'>;
  readonly workers: Pick<GraphWorkers, 'call'>;
  /** For the checkpoints that a worker asks for. */
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly notices: { send(notice: RunNotice): void };
  readonly updates: Pick<StateUpdates, 'announce'>;
};

export const shared = {
  tag: 'Threads',
  tracking: { untracked: 'the audit log is that of the platform' },
} as const;

/** A UUID of any version: those that create runs of a thread take any too. Streams find its runs by its text. */
export const threadId = z.guid().toLowerCase();
export const threadParams = z.object({ thread_id: threadId });

/** Large states are sent here, and any text of a graph. */
export const STATE_BODY = {
  maxBytes: 20 * 1024 * 1024,
  maxDepth: 256,
  maxNames: 1_000_000,
  mayRepeatNames: true,
  isStorable: false,
} as const;

/** Of requests whose JSON is stored and searched: without U+0000, which the search cannot have. */
export const THREAD_BODY = { ...STATE_BODY, isStorable: true } as const;

/** Bodies of clients that leave a member out by `null`. */
export const json = z.record(z.string(), z.unknown());

/** JSON that a handler has added to: checked again, because it is stored. */
export function toStored(metadata: unknown): string {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new DomainError('unusable', 'The authorization handler left metadata that is no object');
  if (pathToUnstorable(metadata) !== undefined)
    throw new DomainError('unusable', 'The authorization handler left metadata with U+0000');
  const text = JSON.stringify(metadata);
  requireSmallMetadata(text);
  return text;
}

export function noThread(): DomainError {
  return new DomainError('not_found', 'There is no such thread');
}

/** JSON whose text is made here, of parts that are not read. */
export const threadText = {
  textType: 'application/json',
  schema: z
    .looseObject({
      thread_id: z.string(),
      created_at: z.string(),
      updated_at: z.string(),
      state_updated_at: z.string(),
      metadata: json,
      status: z.enum(THREAD_STATUSES),
      config: json,
      values: z.unknown().optional(),
      interrupts: json.optional(),
      error: json.optional(),
    })
    .meta({ id: 'Thread' }),
};

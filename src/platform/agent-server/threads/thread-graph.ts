// The graph that reads the state of a thread: that of its metadata, as the creation of a run leaves it there, or of its last run.
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { userKeysOf, withoutReservedNames } from '../access/configurable-names.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { noThread, type ThreadParts } from './thread-route.ts';

export type ThreadGraph = {
  /** Undefined: the thread has never run, and names no graph. */
  readonly graphId: string | undefined;
  /** JSON: what the runs of the thread were configured with. */
  readonly config: string;
  readonly isBusy: boolean;
};

/** Throws DomainError: `not_found` for a thread that the caller may not see, `conflict` for a graph that is not deployed any more. */
export async function findThreadGraph(
  { deployment }: Pick<ThreadParts, 'deployment'>,
  db: Reader,
  threadId: string,
  filter: Filter | undefined,
): Promise<ThreadGraph> {
  const row = await db
    .selectFrom('agent_threads')
    .select(sql<string>`config::text`.as('config'))
    .select(sql<string | null>`metadata->>'graph_id'`.as('graph_id'))
    .select((query) => [
      query
        .selectFrom('agent_runs')
        .select('graph_id')
        .whereRef('agent_runs.thread_id', '=', 'agent_threads.thread_id')
        .orderBy('position', 'desc')
        .limit(1)
        .as('last_graph_id'),
      sql<boolean>`status = 'busy' or exists (select from agent_runs
        where agent_runs.thread_id = agent_threads.thread_id and agent_runs.status in ('pending', 'running'))`.as(
        'is_busy',
      ),
    ])
    .where('thread_id', '=', threadId)
    .where(whereVisible(filter))
    .executeTakeFirst();
  if (row === undefined) throw noThread();
  const graphId = row.graph_id ?? row.last_graph_id ?? undefined;
  if (graphId !== undefined && !deployment.graphs.has(graphId))
    throw new DomainError('conflict', 'The graph of this thread is not part of this deployment any more');
  return { graphId, config: row.config, isBusy: row.is_busy };
}

export type CheckpointOfThread = {
  readonly checkpoint_id?: string | null | undefined;
  readonly checkpoint_ns?: string | null | undefined;
  readonly checkpoint_map?: Readonly<Record<string, unknown>> | null | undefined;
};

export type StateOfThread = {
  readonly threadId: string;
  /** Whoever calls: a function that makes graphs learns whose state it is asked for. */
  readonly user: AgentUser | undefined;
  readonly checkpoint?: CheckpointOfThread | null | undefined;
};

/** The config of a state: that of the thread, at a checkpoint of it. Without one, at the latest. JSON. */
export function toStateConfig(config: string, { threadId, user, checkpoint }: StateOfThread): string {
  const known = withoutReservedNames(JSON.parse(config));
  const { checkpoint_id, checkpoint_ns, checkpoint_map } = checkpoint ?? {};
  const {
    checkpoint_id: _id,
    checkpoint_map: _map,
    ...configurable
  } = (known['configurable'] as CheckpointOfThread | undefined) ?? {};
  return JSON.stringify({
    ...known,
    configurable: {
      ...configurable,
      ...userKeysOf(user),
      thread_id: threadId,
      checkpoint_ns: checkpoint_ns ?? '',
      ...(checkpoint_id === undefined || checkpoint_id === null ? {} : { checkpoint_id }),
      ...(checkpoint_map === undefined || checkpoint_map === null ? {} : { checkpoint_map }),
    },
  });
}

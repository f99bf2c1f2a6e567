// The routes of the state of a thread: the latest one, that of a checkpoint, and its update. A worker reads and writes it, because its
// graph alone knows what the stored values of its channels mean.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { defineRoute, type Reader, type Route } from '../../api/route.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { type Filter, whereVisible } from '../access/filters.ts';
import { requireCheckpoint } from '../checkpoints/checkpoint-reading.ts';
import { toSearchable } from '../json-for-search.ts';
import type { AgentGrant } from '../access/gate.ts';
import { callState } from './state-calls.ts';
import { type CheckpointOfThread, findThreadGraph, toStateConfig } from './thread-graph.ts';
import {
  json,
  noThread,
  shared,
  STATE_BODY,
  THREAD_BODY,
  type ThreadParts,
  threadParams,
  toStored,
} from './thread-route.ts';
import { patchThread } from './thread-writing.ts';

export const checkpointOfThread = z.object({
  checkpoint_id: z.string().max(200).nullish(),
  checkpoint_ns: z.string().max(1_500).nullish(),
  checkpoint_map: json.nullish(),
});

export const threadState = z
  .looseObject({ values: z.unknown(), next: z.array(z.string()), tasks: z.array(z.unknown()) })
  .meta({ id: 'ThreadState' });
const stateText = { textType: 'application/json', schema: threadState };

export function createStateRoutes(parts: ThreadParts): readonly Route[] {
  return [getRoute(parts), postRoute(parts), atCheckpointRoute(parts), updateRoute(parts), patchRoute(parts)];
}

/** Of a thread that never ran, as a worker gives it for one without a checkpoint. */
const EMPTY_STATE = JSON.stringify({
  ...{ values: {}, next: [], tasks: [], created_at: null },
  ...{ checkpoint: null, parent_checkpoint: null, interrupts: [] },
});

type Wanted = {
  readonly threadId: string;
  readonly filter: Filter | undefined;
  readonly checkpoint?: CheckpointOfThread | null | undefined;
  readonly subgraphs?: boolean | null | undefined;
};

export type StateReader = Pick<AgentGrant, 'user'> & { readonly db: Reader; readonly signal: AbortSignal };

/** In `prepare`: it waits for a worker. */
async function readState(
  parts: ThreadParts,
  { db, signal, user }: StateReader,
  { threadId, filter, checkpoint, subgraphs }: Wanted,
): Promise<string> {
  const { graphId, config } = await findThreadGraph(parts, db, threadId, filter);
  if (graphId === undefined) {
    if (typeof checkpoint?.checkpoint_id !== 'string') return EMPTY_STATE;
    throw new DomainError('not_found', 'The thread has no such checkpoint');
  }
  const params = {
    ...{ graph_id: graphId, thread_id: threadId, subgraphs: subgraphs ?? false },
    config: toStateConfig(config, { threadId, user, checkpoint }),
  };
  return callState(parts, 'state.get', params, signal);
}

const oneState = { ...shared, responses: { 200: stateText }, failures: [400, 404, 409] } as const;
const withSubgraphs = z.object({ subgraphs: z.boolean().optional() });

const getRoute = (parts: ThreadParts): Route =>
  defineRoute({
    ...oneState,
    method: 'GET',
    path: '/threads/{thread_id}/state',
    summary: 'Get the latest state of a thread',
    access: parts.gate.access,
    params: threadParams,
    query: withSubgraphs,
    async prepare(call) {
      const { filter } = await parts.gate.authorize(call, 'threads:read', call.params);
      return readState(parts, call, { threadId: call.params.thread_id, filter, ...call.query });
    },
    handle: async (_, body) => ({ body }),
  });

const atCheckpointRoute = (parts: ThreadParts): Route =>
  defineRoute({
    ...oneState,
    method: 'GET',
    path: '/threads/{thread_id}/state/{checkpoint_id}',
    summary: 'Get the state of a thread at a checkpoint',
    access: parts.gate.access,
    params: threadParams.extend({ checkpoint_id: z.guid() }),
    query: withSubgraphs,
    async prepare(call) {
      const { thread_id: threadId, checkpoint_id } = call.params;
      const { filter } = await parts.gate.authorize(call, 'threads:read', { thread_id: threadId });
      return readState(parts, call, { threadId, filter, checkpoint: { checkpoint_id }, ...call.query });
    },
    handle: async (_, body) => ({ body }),
  });

const postRoute = (parts: ThreadParts): Route =>
  defineRoute({
    ...oneState,
    method: 'POST',
    path: '/threads/{thread_id}/state/checkpoint',
    summary: 'Get the state of a thread at a checkpoint, also of a subgraph',
    access: parts.gate.access,
    params: threadParams,
    body: z.object({ checkpoint: checkpointOfThread.nullish(), subgraphs: z.boolean().nullish() }),
    bodyRules: THREAD_BODY,
    async prepare(call) {
      const { filter } = await parts.gate.authorize(call, 'threads:read', call.params);
      return readState(parts, call, { threadId: call.params.thread_id, filter, ...call.body });
    },
    handle: async (_, body) => ({ body }),
  });

const stateUpdate = z.object({
  values: z.unknown().optional(),
  as_node: z.string().nullish(),
  checkpoint: checkpointOfThread.nullish(),
  checkpoint_id: z.string().max(200).nullish(),
});

const BUSY = 'A run of this thread has not ended: update the state afterwards, or cancel the run';

const updateRoute = (parts: ThreadParts): Route => {
  /** What a transaction has stored, by its outcome. */
  const states = new WeakMap<object, string>();
  return defineRoute({
    ...shared,
    method: 'POST',
    path: '/threads/{thread_id}/state',
    summary: 'Update the state of a thread, as if a node had',
    access: parts.gate.access,
    params: threadParams,
    body: stateUpdate,
    bodyRules: STATE_BODY,
    responses: { 200: z.object({ checkpoint: json }) },
    failures: [400, 404, 409],
    // The worker writes the checkpoint meanwhile, in transactions of its own, in which the thread must have no run.
    async prepare({ params: { thread_id: threadId }, body, ...call }) {
      const { filter } = await parts.gate.authorize(call, 'threads:update', { thread_id: threadId });
      const { graphId, config, isBusy } = await findThreadGraph(parts, call.db, threadId, filter);
      if (isBusy) throw new DomainError('conflict', BUSY);
      if (graphId === undefined)
        throw new DomainError(
          'unusable',
          'This thread has no graph: set graph_id in its metadata, or run it first',
        );
      const { values = null, as_node, checkpoint, checkpoint_id } = body;
      const place = {
        ...checkpoint,
        ...(checkpoint_id === undefined || checkpoint_id === null ? {} : { checkpoint_id }),
      };
      const { checkpoint_id: id, checkpoint_ns: namespace } = place;
      if (typeof id === 'string' && id !== '') await requireCheckpoint(call.db, { threadId, id, namespace });
      const state = { threadId, user: call.user, checkpoint: place };
      const params = {
        ...{ graph_id: graphId, thread_id: threadId, config: toStateConfig(config, state) },
        values: JSON.stringify(values),
        ...(as_node === undefined || as_node === null ? {} : { as_node }),
      };
      return { filter, ...(await callState(parts, 'state.update', params, call.signal)) };
    },
    async handle({ db, params }, { filter, configurable, state }) {
      await storeState(db, params.thread_id, state);
      const found = db
        .selectFrom('agent_threads')
        .select('thread_id')
        .where('thread_id', '=', params.thread_id);
      if ((await found.where(whereVisible(filter)).executeTakeFirst()) === undefined) throw noThread();
      const outcome = { body: { checkpoint: configurable } };
      states.set(outcome, state);
      return outcome;
    },
    async after({ params }, outcome) {
      const state = states.get(outcome);
      if (state !== undefined) await parts.updates.announce(params.thread_id, state);
    },
  });
};

const updatedState = z.object({
  values: z.unknown(),
  next: z.array(z.string()),
  tasks: z.array(z.object({ id: z.string(), interrupts: z.array(z.unknown()).optional() })),
  checkpoint: z.object({ checkpoint_id: z.string().nullish() }).nullish(),
});

/** For searches. A run that has begun by now has the thread, and what has followed by now is newer: their end says what the thread has. */
async function storeState(db: Database, threadId: string, state: string): Promise<void> {
  const { values, next, tasks, checkpoint } = updatedState.parse(JSON.parse(state));
  const text = JSON.stringify(values ?? null);
  const interrupts = tasks.flatMap(({ id, interrupts: of = [] }) => (of.length === 0 ? [] : [[id, of]]));
  await db
    .updateTable('agent_threads')
    .set({
      ...{ values: text, searched_values: toSearchable(text) },
      interrupts: JSON.stringify(Object.fromEntries(interrupts)),
      // Nothing is left to go on with.
      ...(next.length === 0
        ? { status: sql<'idle'>`case status when 'interrupted' then 'idle' else status end` }
        : {}),
      ...{ updated_at: sql<Date>`now()`, state_updated_at: sql<Date>`now()` },
    })
    .where('thread_id', '=', threadId)
    .where('status', '<>', 'busy')
    .where(
      sql<boolean>`not exists (select from agent_checkpoints where agent_checkpoints.thread_id = ${threadId}
        and checkpoint_ns = '' and checkpoint_id > ${checkpoint?.checkpoint_id ?? null}::text)`,
    )
    .execute();
}

const patchRoute = ({ gate }: ThreadParts): Route =>
  defineRoute({
    ...shared,
    method: 'PATCH',
    path: '/threads/{thread_id}/state',
    summary: 'Merge metadata into that of a thread, as PATCH of the thread does',
    access: gate.access,
    params: threadParams,
    body: z.object({ metadata: json.nullish() }),
    bodyRules: THREAD_BODY,
    responses: { 204: null },
    failures: [400, 404],
    async prepare(call) {
      const value = { ...call.params, metadata: call.body.metadata ?? {} };
      const allowed = await gate.authorize(call, 'threads:update', value);
      return { metadata: toStored(allowed.value['metadata'] ?? {}), filter: allowed.filter };
    },
    async handle({ db, params }, { metadata, filter }) {
      await patchThread(db, { id: params.thread_id, metadata }, filter);
    },
  });

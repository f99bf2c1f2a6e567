// The routes of the history of a thread: its states, the newest first.
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Filter } from '../access/filters.ts';
import { callState } from './state-calls.ts';
import { checkpointOfThread, type StateReader, threadState } from './state-routes.ts';
import { type CheckpointOfThread, findThreadGraph, toStateConfig } from './thread-graph.ts';
import { json, shared, THREAD_BODY, type ThreadParts, threadParams } from './thread-route.ts';

const historyText = { textType: 'application/json', schema: z.array(threadState) };
const oneHistory = { ...shared, params: threadParams, responses: { 200: historyText } } as const;
const failures = [400, 404, 409] as const;

export function createHistoryRoutes(parts: ThreadParts): readonly Route[] {
  return [getRoute(parts), postRoute(parts)];
}

const limit = z.int().min(1).max(1_000);

const getRoute = (parts: ThreadParts): Route =>
  defineRoute({
    ...oneHistory,
    failures,
    method: 'GET',
    path: '/threads/{thread_id}/history',
    summary: 'Get the past states of a thread, the newest first',
    access: parts.gate.access,
    query: z.object({ limit: limit.default(10), before: z.string().max(200).optional() }),
    async prepare(call) {
      const { filter } = await parts.gate.authorize(call, 'threads:read', call.params);
      return readHistory(parts, call, { threadId: call.params.thread_id, filter, ...call.query });
    },
    handle: async (_, body) => ({ body }),
  });

/** A checkpoint by its id, by its place, or by a config that names it. */
const before = z.union([
  z
    .string()
    .max(200)
    .transform((checkpoint_id) => ({ checkpoint_id })),
  z.looseObject({ configurable: checkpointOfThread }).transform(({ configurable }) => configurable),
  checkpointOfThread,
]);

const historyWanted = z.object({
  limit: limit.nullish(),
  before: before.nullish(),
  metadata: json.nullish(),
  checkpoint: checkpointOfThread.nullish(),
});

const postRoute = (parts: ThreadParts): Route =>
  defineRoute({
    ...oneHistory,
    failures,
    method: 'POST',
    path: '/threads/{thread_id}/history',
    summary: 'Get the past states of a thread by metadata and checkpoint, the newest first',
    access: parts.gate.access,
    body: historyWanted,
    bodyRules: THREAD_BODY,
    async prepare(call) {
      const { filter } = await parts.gate.authorize(call, 'threads:read', call.params);
      const { before: place, ...wanted } = call.body;
      const checkpointId = place?.checkpoint_id;
      return readHistory(parts, call, {
        ...{ threadId: call.params.thread_id, filter, ...wanted },
        limit: wanted.limit ?? 10,
        before: checkpointId ?? undefined,
      });
    },
    handle: async (_, body) => ({ body }),
  });

type Wanted = {
  readonly threadId: string;
  readonly filter: Filter | undefined;
  readonly limit: number;
  /** A checkpoint. */
  readonly before?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
  readonly checkpoint?: CheckpointOfThread | null | undefined;
};

/** In `prepare`: it waits for a worker. */
async function readHistory(
  parts: ThreadParts,
  { db, signal, user }: StateReader,
  wanted: Wanted,
): Promise<string> {
  const { threadId, filter, limit: most, before: last, metadata, checkpoint } = wanted;
  const { graphId, config } = await findThreadGraph(parts, db, threadId, filter);
  if (graphId === undefined) return '[]';
  const params = {
    ...{ graph_id: graphId, thread_id: threadId, limit: most },
    config: toStateConfig(config, { threadId, user, checkpoint }),
    ...(last === undefined ? {} : { before: { configurable: { checkpoint_id: last } } }),
    ...(metadata === undefined || metadata === null ? {} : { filter: metadata }),
  };
  return callState(parts, 'state.history', params, signal);
}

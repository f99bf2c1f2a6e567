// The routes of threads themselves, and of their lists, states and histories together.
import { randomUUID } from 'node:crypto';
import { InvalidInput } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import type { Access } from '../../api/access.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { sql } from '../../store/sql.ts';
import { whereVisible } from '../access/filters.ts';
import type { AgentGrant } from '../access/gate.ts';
import { createHistoryRoutes } from './history-routes.ts';
import { createThreadListRoutes } from './list-routes.ts';
import { createStateRoutes } from './state-routes.ts';
import {
  json,
  shared,
  STATE_BODY,
  THREAD_BODY,
  threadId,
  type ThreadParts,
  threadParams,
  threadText,
  toStored,
} from './thread-route.ts';
import { copyThread, createThread, deleteThread, noCopy, patchThread, readThread } from './thread-writing.ts';

/** Lists first: `search` and `count` are no ids. */
export function createThreadRoutes(parts: ThreadParts): readonly Route[] {
  return [
    ...createThreadListRoutes(parts),
    createRoute(parts),
    getRoute(parts),
    patchRoute(parts),
    deleteRoute(parts),
    copyRoute(parts),
    ...createStateRoutes(parts),
    ...createHistoryRoutes(parts),
  ];
}

const newThread = z.object({
  thread_id: threadId.nullish(),
  metadata: json.nullish(),
  if_exists: z.enum(['raise', 'do_nothing']).nullish(),
  supersteps: z.array(z.unknown()).nullish(),
  ttl: z.unknown().optional(),
});

const createRoute = ({ gate }: ThreadParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/threads',
    summary: 'Create a thread',
    access: gate.access,
    body: newThread.optional(),
    bodyRules: THREAD_BODY,
    responses: { 200: threadText },
    failures: [400, 409],
    async prepare({ body = {}, ...call }) {
      requireSupported(body);
      const { thread_id, metadata, if_exists } = body;
      const [id, ifExists] = [thread_id ?? randomUUID(), if_exists ?? 'raise'];
      const value = { thread_id: id, metadata: metadata ?? {}, if_exists: ifExists };
      const allowed = await gate.authorize(call, 'threads:create', value);
      return { id, ifExists, metadata: toStored(allowed.value['metadata'] ?? {}), filter: allowed.filter };
    },
    handle: async ({ db }, { filter, ...thread }) => ({ body: await createThread(db, thread, filter) }),
  });

/** What a later version has must not be ignored: a thread would stay for ever, or lack its history. */
function requireSupported(body: { readonly supersteps?: unknown; readonly ttl?: unknown }): void {
  const issues = (['supersteps', 'ttl'] as const)
    .filter((name) => {
      const given = body[name];
      return given !== undefined && given !== null && !(Array.isArray(given) && given.length === 0);
    })
    .map((name) => ({
      loc: ['body', name],
      msg: 'This server does not have it yet: leave it out',
      type: 'value_error' as const,
    }));
  if (issues.length > 0) throw new InvalidInput(issues);
}

const oneThread = { ...shared, params: threadParams, failures: [404] } as const;

const getRoute = ({ gate }: ThreadParts): Route =>
  defineRoute({
    ...oneThread,
    method: 'GET',
    path: '/threads/{thread_id}',
    summary: 'Get a thread',
    access: gate.access,
    query: z.object({ include: z.string().optional() }),
    responses: { 200: threadText },
    prepare: (call) => gate.authorize(call, 'threads:read', call.params),
    handle: async ({ db, params }, { filter }) => ({ body: await readThread(db, params.thread_id, filter) }),
  });

/** The clients that want no body say so in a header field (RFC 7240 §4.2). */
function withPreference(access: Access<AgentGrant>): Access<AgentGrant & { readonly isMinimal: boolean }> {
  const add = (granted: AgentGrant, prefer: string | undefined) => ({
    ...granted,
    isMinimal: prefer !== undefined && /(?:^|[,;\s])return="?minimal"?(?:$|[,;\s])/i.test(prefer),
  });
  return {
    ...access,
    enter: async (entry) => add(await access.enter(entry), entry.head.field('prefer')),
    // Callers of an agent server are authenticated by its own code, each time.
    recall: () => undefined,
    confirm: async (entry, granted) => add(await access.confirm(entry, granted), entry.head.field('prefer')),
  };
}

const patchRoute = ({ gate }: ThreadParts): Route =>
  defineRoute({
    ...oneThread,
    method: 'PATCH',
    path: '/threads/{thread_id}',
    summary: 'Merge metadata into that of a thread',
    access: withPreference(gate.access),
    body: z.object({ metadata: json.nullish(), ttl: z.unknown().optional() }),
    bodyRules: THREAD_BODY,
    responses: { 200: threadText, 204: null },
    failures: [400, 404],
    async prepare(call) {
      requireSupported(call.body);
      const { metadata } = call.body;
      const value = { ...call.params, metadata: metadata ?? {} };
      const allowed = await gate.authorize(call, 'threads:update', value);
      return { metadata: toStored(allowed.value['metadata'] ?? {}), filter: allowed.filter };
    },
    async handle({ db, params, isMinimal }, { metadata, filter }) {
      const body = await patchThread(db, { id: params.thread_id, metadata }, filter);
      return isMinimal ? { status: 204 as const } : { status: 200 as const, body };
    },
  });

const deleteRoute = ({ gate, notices }: ThreadParts): Route =>
  defineRoute({
    ...oneThread,
    method: 'DELETE',
    path: '/threads/{thread_id}',
    summary: 'Delete a thread with its runs, which end, and its checkpoints',
    access: gate.access,
    responses: { 204: null },
    prepare: (call) => gate.authorize(call, 'threads:delete', call.params),
    handle: async ({ db, params }, { filter }) => ({
      resources: await deleteThread(db, params.thread_id, filter),
    }),
    after(_, { resources = [] }) {
      for (const runId of resources) notices.send({ kind: 'ended', runId });
    },
  });

const copyRoute = ({ gate }: ThreadParts): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/threads/{thread_id}/copy',
    summary: 'Copy a thread with its checkpoints',
    access: gate.access,
    params: threadParams,
    body: z.looseObject({}).nullish(),
    bodyRules: STATE_BODY,
    responses: { 200: threadText },
    failures: [400, 409],
    async prepare(call) {
      const from = call.params.thread_id;
      const { filter } = await gate.authorize(call, 'threads:read', call.params);
      const found = call.db.selectFrom('agent_threads').select(sql<string>`metadata::text`.as('metadata'));
      const source = await found.where('thread_id', '=', from).where(whereVisible(filter)).executeTakeFirst();
      if (source === undefined) throw noCopy();
      const id = randomUUID();
      const value = { thread_id: id, metadata: { ...JSON.parse(source.metadata), thread_id: id } };
      const allowed = await gate.authorize(call, 'threads:create', value);
      return { from, id, metadata: toStored(allowed.value['metadata'] ?? {}), filter };
    },
    handle: async ({ db }, { filter, ...copy }) => ({ body: await copyThread(db, copy, filter) }),
  });

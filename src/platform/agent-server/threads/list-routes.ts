// The routes that find threads: search, list and count.
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { Reader } from '../../store/database.ts';
import type { Filter } from '../access/filters.ts';
import { shared, THREAD_BODY, type ThreadParts, threadText } from './thread-route.ts';
import { THREAD_STATUSES } from './thread-rows.ts';
import {
  countThreads,
  pageShape,
  searchThreads,
  threadCount,
  type ThreadSearch,
  threadSearch,
} from './thread-search.ts';

const threadList = { textType: 'application/json', schema: z.array(threadText.schema) };

export function createThreadListRoutes({ gate }: Pick<ThreadParts, 'gate'>): readonly Route[] {
  return [searchRoute(gate), listRoute(gate), countRoute(gate)];
}

type Gate = ThreadParts['gate'];

const searchRoute = (gate: Gate): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/threads/search',
    summary: 'Search threads by metadata, values, status and ids',
    access: gate.access,
    body: threadSearch,
    bodyRules: THREAD_BODY,
    responses: { 200: threadList },
    failures: [400],
    async prepare(call) {
      const { metadata, ids, status, values, limit, offset } = call.body;
      const value = { metadata, ids, status, values, limit, offset };
      const { filter } = await gate.authorize(call, 'threads:search', value);
      // Here, where others have turns while parts of threads are extracted, and no connection waits meanwhile.
      return page(call.db, call.body, filter);
    },
    handle: async (_, found) => found,
  });

const listRoute = (gate: Gate): Route =>
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/threads',
    summary: 'List threads, the newest first',
    access: gate.access,
    query: z.object({ ...pageShape, status: z.enum(THREAD_STATUSES).optional() }),
    responses: { 200: threadList },
    failures: [400],
    prepare: (call) => gate.authorize(call, 'threads:search', { ...call.query }),
    handle: ({ db, query }, { filter }) => page(db, threadSearch.parse(query), filter),
  });

const countRoute = (gate: Gate): Route =>
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/threads/count',
    summary: 'Count threads by metadata, values and status',
    access: gate.access,
    body: threadCount,
    bodyRules: THREAD_BODY,
    responses: { 200: z.int() },
    async prepare(call) {
      const { metadata, status, values } = call.body;
      return gate.authorize(call, 'threads:search', { metadata, status, values, limit: 0, offset: 0 });
    },
    handle: async ({ db, body }, { filter }) => ({ body: await countThreads(db, body, filter) }),
  });

/** The fields that clients page by: the next offset where there is more, and how many there are at least. */
async function page(db: Reader, wanted: ThreadSearch, filter: Filter | undefined) {
  const { texts, hasMore } = await searchThreads(db, wanted, filter);
  const end = wanted.offset + texts.length;
  const fields = hasMore
    ? { 'X-Pagination-Next': String(end), 'X-Pagination-Total': String(end + 1) }
    : { 'X-Pagination-Total': String(end) };
  return { body: `[${texts.join(',')}]`, fields };
}

// The routes that find assistants and versions: search, count and the versions of one.
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import {
  ASSISTANT_BODY,
  assistantList,
  assistantParams,
  type AssistantParts,
  idOf,
  shared,
  versionList,
} from './assistant-route.ts';
import {
  assistantCount,
  assistantSearch,
  countAssistants,
  listVersions,
  searchAssistants,
  versionSearch,
} from './assistant-search.ts';

export function createAssistantListRoutes(parts: AssistantParts): readonly Route[] {
  return [searchRoute(parts), countRoute(parts), versionsRoute(parts)];
}

const searchRoute = ({ gate }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants/search',
    method: 'POST',
    summary: 'Search assistants by graph, name and metadata',
    access: gate.access,
    body: assistantSearch,
    bodyRules: ASSISTANT_BODY,
    responses: { 200: assistantList },
    failures: [400],
    async prepare(call) {
      const { graph_id, metadata, limit, offset } = call.body;
      return gate.authorize(call, 'assistants:search', { graph_id, metadata, limit, offset });
    },
    async handle({ db, body }, { filter }) {
      const { texts, hasMore } = await searchAssistants(db, body, filter);
      const end = body.offset + texts.length;
      const fields = hasMore
        ? { 'X-Pagination-Next': String(end), 'X-Pagination-Total': String(end + 1) }
        : { 'X-Pagination-Total': String(end) };
      return { body: `[${texts.join(',')}]`, fields };
    },
  });

const countRoute = ({ gate }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants/count',
    method: 'POST',
    summary: 'Count assistants by graph, name and metadata',
    access: gate.access,
    body: assistantCount,
    bodyRules: ASSISTANT_BODY,
    responses: { 200: z.int() },
    async prepare(call) {
      const { graph_id, metadata } = call.body;
      return gate.authorize(call, 'assistants:search', { graph_id, metadata });
    },
    handle: async ({ db, body }, { filter }) => ({ body: await countAssistants(db, body, filter) }),
  });

const versionsRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants/{assistant_id}/versions',
    method: 'POST',
    summary: 'List the versions of an assistant, the newest first',
    access: gate.access,
    params: assistantParams,
    body: versionSearch.optional(),
    bodyRules: ASSISTANT_BODY,
    responses: { 200: versionList },
    failures: [400, 404],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const { filter } = await gate.authorize(call, 'assistants:read', {
        assistant_id: id,
        metadata: call.body?.metadata,
      });
      return { id, filter };
    },
    async handle({ db, body }, { id, filter }) {
      const texts = await listVersions(db, id, body ?? versionSearch.parse({}), filter);
      return { body: `[${texts.join(',')}]` };
    },
  });

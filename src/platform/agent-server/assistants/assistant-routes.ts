// `/assistants`: stored configurations of graphs, with their versions. The documents are those that public clients parse.
import { randomUUID } from 'node:crypto';
import { InvalidInput } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { createAssistantGraphRoutes } from './assistant-graph-routes.ts';
import { createAssistantListRoutes } from './assistant-list-routes.ts';
import {
  ASSISTANT_BODY,
  assistantParams,
  type AssistantParts,
  assistantResponse,
  idOf,
  json,
  metadataOf,
  requireGraph,
  shared,
} from './assistant-route.ts';
import { readAssistant } from './assistant-search.ts';
import {
  activateVersion,
  type AssistantVersion,
  createAssistant,
  deleteAssistant,
  patchAssistant,
} from './assistant-writing.ts';

export function createAssistantRoutes(parts: AssistantParts): readonly Route[] {
  return [
    createRoute(parts),
    ...createAssistantListRoutes(parts),
    readRoute(parts),
    patchRoute(parts),
    deleteRoute(parts),
    latestRoute(parts),
    ...createAssistantGraphRoutes(parts),
  ];
}

const given = {
  config: json.nullish(),
  context: json.nullish(),
  metadata: json.nullish(),
  name: z.string().max(1_000).nullish(),
  description: z.string().max(100_000).nullish(),
};
const newAssistant = z.object({
  graph_id: z.string(),
  assistant_id: z.guid().nullish(),
  if_exists: z.enum(['raise', 'do_nothing']).nullish(),
  ...given,
});
/** Members that are left out, or null, stay as they are. */
const change = z.object({ graph_id: z.string().nullish(), ...given });

const one = { ...shared, path: '/assistants/{assistant_id}', params: assistantParams } as const;

const createRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants',
    method: 'POST',
    summary: 'Create an assistant of a graph',
    access: gate.access,
    body: newAssistant,
    bodyRules: ASSISTANT_BODY,
    responses: { 200: assistantResponse },
    failures: [404, 409],
    async prepare(call) {
      const { body } = call;
      requireGraph(deployment, body.graph_id);
      const id = body.assistant_id?.toLowerCase() ?? randomUUID();
      const { graph_id, config, context, metadata, if_exists, name, description } = body;
      const value = { graph_id, config, context, metadata: metadata ?? {}, if_exists, name, description };
      return { id, ...(await gate.authorize(call, 'assistants:create', { assistant_id: id, ...value })) };
    },
    async handle({ db, body }, { id, filter, value }) {
      const version: AssistantVersion = {
        graph_id: body.graph_id,
        name: (body.name ?? 'Untitled') || body.graph_id,
        description: body.description ?? null,
        config: JSON.stringify(body.config ?? {}),
        context: JSON.stringify(body.context ?? {}),
        metadata: metadataOf(value) ?? '{}',
      };
      const ifExists = body.if_exists ?? 'raise';
      return { body: await createAssistant(db, { id, version, ifExists }, filter) };
    },
  });

const readRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...one,
    method: 'GET',
    summary: 'Read an assistant, by its id or as the default one of a graph',
    access: gate.access,
    responses: { 200: assistantResponse },
    failures: [404],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      return { id, ...(await gate.authorize(call, 'assistants:read', { assistant_id: id })) };
    },
    handle: async ({ db }, { id, filter }) => ({ body: await readAssistant(db, id, filter) }),
  });

const patchRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...one,
    method: 'PATCH',
    summary: 'Make a new version of an assistant, which is active then; metadata is merged',
    access: gate.access,
    body: change,
    bodyRules: ASSISTANT_BODY,
    responses: { 200: assistantResponse },
    failures: [404, 409],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const { graph_id, config, context, metadata, name, description } = call.body;
      requireGraph(deployment, graph_id ?? undefined);
      const value = { assistant_id: id, graph_id, config, context, metadata, name, description };
      return { id, ...(await gate.authorize(call, 'assistants:update', value)) };
    },
    async handle({ db, body }, { id, filter, value }) {
      const { graph_id, config, context, name, description } = body;
      const changed = {
        ...(typeof graph_id === 'string' && { graph_id }),
        ...(typeof name === 'string' && { name }),
        ...(typeof description === 'string' && { description }),
        ...(config && { config: JSON.stringify(config) }),
        ...(context && { context: JSON.stringify(context) }),
      };
      const metadata = metadataOf(value);
      const all = metadata === undefined ? changed : { ...changed, metadata };
      return { body: await patchAssistant(db, { id, changed: all }, filter) };
    },
  });

const deleteRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...one,
    method: 'DELETE',
    summary:
      'Delete an assistant with all its versions and ended runs, and the threads of its runs on request',
    access: gate.access,
    query: z.object({ delete_threads: z.boolean().default(false) }),
    responses: { 200: z.array(z.guid()) },
    failures: [404, 409],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const { filter } = await gate.authorize(call, 'assistants:delete', { assistant_id: id });
      if (!call.query.delete_threads) return { id, filter, threads: undefined };
      // Threads may be those of others: they are deleted as far as the caller may delete threads.
      const threads = await gate.authorize(call, 'threads:delete', { thread_id: undefined });
      return { id, filter, threads: { filter: threads.filter } };
    },
    async handle({ db }, { id, filter, threads }) {
      await deleteAssistant(db, { id, threads }, filter);
      return { body: [id] };
    },
  });

const versionNumber = z.int().min(1).max(2_147_483_647);

const latestRoute = ({ gate, deployment }: AssistantParts): Route =>
  defineRoute({
    ...one,
    path: '/assistants/{assistant_id}/latest',
    method: 'POST',
    summary: 'Make an earlier version active: all of it is restored',
    access: gate.access,
    query: z.object({ version: versionNumber.optional() }),
    body: z.object({ version: versionNumber.optional() }).optional(),
    responses: { 200: assistantResponse },
    failures: [404],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const version = call.body?.version ?? call.query.version;
      if (version === undefined)
        throw new InvalidInput([{ loc: ['body', 'version'], msg: 'Field required', type: 'missing' }]);
      const { filter } = await gate.authorize(call, 'assistants:update', { assistant_id: id, version });
      return { id, version, filter };
    },
    async handle({ db }, { id, version, filter }) {
      const graphs = [...deployment.graphs.keys()];
      return { body: await activateVersion(db, { id, version, graphs }, filter) };
    },
  });

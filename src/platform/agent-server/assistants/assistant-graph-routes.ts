// What a worker knows of the graph of an assistant: its drawing and its schemas.
import { DomainError, GivenRefusal } from '../../../base/domain-error.ts';
import { isObject } from '../../../base/json/json-document.ts';
import { z } from '../../../base/schema.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { userKeysOf, withoutReservedNames } from '../access/configurable-names.ts';
import type { Filter } from '../access/filters.ts';
import { whereVisible } from '../access/filters.ts';
import type { AgentGrant } from '../access/gate.ts';
import type { Reader } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { WorkerError } from '../workers/worker-error.ts';
import {
  assistantParams,
  type AssistantParts,
  idOf,
  json,
  noAssistant,
  requireGraph,
  shared,
} from './assistant-route.ts';

export function createAssistantGraphRoutes(parts: AssistantParts): readonly Route[] {
  return [
    graphRoute(parts),
    schemasRoute(parts),
    subgraphsRoute(parts, '/assistants/{assistant_id}/subgraphs', assistantParams),
    subgraphsRoute(
      parts,
      '/assistants/{assistant_id}/subgraphs/{namespace}',
      assistantParams.extend({ namespace: z.string() }),
    ),
  ];
}

const jsonText = { textType: 'application/json', schema: json };
const WAIT_MS = 30_000;

const graphRoute = ({ gate, deployment, workers }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants/{assistant_id}/graph',
    method: 'GET',
    summary: 'Read the nodes and edges of the graph, with those of its subgraphs on request',
    access: gate.access,
    params: assistantParams,
    query: z.object({
      xray: z
        .string()
        .regex(/^(?:true|false|\d{1,3})$/)
        .optional(),
    }),
    responses: { 200: jsonText },
    failures: [404],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const { filter } = await gate.authorize(call, 'assistants:read', { assistant_id: id });
      const { graphId, config } = await findGraph(call, id, filter);
      requireGraph(deployment, graphId);
      const xray = toXray(call.query.xray);
      return within(call.signal, (signal) =>
        workers.call('graph.drawing', { graph_id: graphId, config, xray }, { signal }),
      );
    },
    handle: async (_, text) => ({ body: text }),
  });

const schemasRoute = ({ gate, deployment, workers }: AssistantParts): Route =>
  defineRoute({
    ...shared,
    path: '/assistants/{assistant_id}/schemas',
    method: 'GET',
    summary: 'Read the JSON Schemas of the graph; null for each that it does not have',
    access: gate.access,
    params: assistantParams,
    responses: { 200: jsonText },
    failures: [404],
    async prepare(call) {
      const id = idOf(deployment, call.params.assistant_id);
      const { filter } = await gate.authorize(call, 'assistants:read', { assistant_id: id });
      const { graphId, config } = await findGraph(call, id, filter);
      requireGraph(deployment, graphId);
      const schemas = await within(call.signal, (signal) =>
        workers.call('graph.schemas', { graph_id: graphId, config }, { signal }),
      );
      return `{"graph_id":${JSON.stringify(graphId)},${schemas.trimStart().slice(1)}`;
    },
    handle: async (_, text) => ({ body: text }),
  });

/** A later version has it. */
const subgraphsRoute = ({ gate }: AssistantParts, path: string, params: typeof assistantParams): Route =>
  defineRoute({
    ...shared,
    ...{ path, params },
    method: 'GET',
    summary: 'Not supported: the subgraphs of the graph',
    access: gate.access,
    responses: { 501: z.strictObject({ detail: z.string() }) },
    handle: async () => ({
      body: { detail: 'The subgraphs of an assistant are not supported by this version' },
    }),
  });

/** With the config of the assistant, and who calls. Throws DomainError `not_found`. */
async function findGraph(
  { db, user }: Pick<AgentGrant, 'user'> & { readonly db: Reader },
  id: string,
  filter: Filter | undefined,
): Promise<{ readonly graphId: string; readonly config: JsonObject }> {
  const row = await db
    .selectFrom('agent_assistants')
    .select(['graph_id', sql<string>`config::text`.as('config')])
    .where('assistant_id', '=', id)
    .where(whereVisible(filter))
    .executeTakeFirst();
  if (row === undefined) throw noAssistant();
  const config = withoutReservedNames(JSON.parse(row.config));
  const known = config['configurable'];
  const configurable = { ...(isObject(known) ? known : {}), ...userKeysOf(user) };
  return { graphId: row.graph_id, config: { ...config, configurable } };
}

/** A boolean, or the depth of subgraphs. */
function toXray(text: string | undefined): boolean | number {
  if (text === undefined || text === 'false') return false;
  return text === 'true' ? true : Number(text);
}

/** What the code of a graph throws is shown by its class alone: its message may quote what the deployment keeps to itself. */
async function within<T>(left: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), WAIT_MS);
  try {
    return await call(AbortSignal.any([left, late.signal]));
  } catch (error) {
    left.throwIfAborted();
    if (late.signal.aborted) throw new DomainError('unavailable', 'The graph did not respond in time');
    if (!(error instanceof WorkerError)) throw error;
    if (error.isRetryable) throw new DomainError('unavailable', `${error.message}: try again`);
    if (error.thrown === undefined) throw new DomainError('unusable', error.message);
    throw new GivenRefusal(500, `The graph has thrown ${error.thrown.error}`);
  } finally {
    clearTimeout(timer);
  }
}

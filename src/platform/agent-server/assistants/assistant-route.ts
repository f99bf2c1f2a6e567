// What the routes of assistants have in common: their parts, their parameters and bodies, and the errors of what is not there.
import { DomainError } from '../../../base/domain-error.ts';
import { z } from '../../../base/schema.ts';
import type { Gate } from '../access/gate.ts';
import type { Deployment } from '../configuration/deployment.ts';
import { requireSmallMetadata } from '../metadata.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { toAssistantId } from './assistant-id.ts';

export type AssistantParts = {
  readonly gate: Gate;
  readonly deployment: Pick<Deployment, 'graphs'>;
  readonly workers: Pick<GraphWorkers, 'call'>;
};

export const shared = {
  tag: 'Assistants',
  tracking: { untracked: 'the audit log is that of the platform' },
} as const;

/** An id, or a graph: its default assistant. */
export const assistantParams = z.object({ assistant_id: z.string().min(1).max(1_000) });

/** What is stored of it can be searched, so that it has no U+0000. */
export const ASSISTANT_BODY = {
  maxBytes: 20 * 1024 * 1024,
  maxDepth: 256,
  maxNames: 1_000_000,
  mayRepeatNames: true,
  isStorable: true,
} as const;

export const json = z.record(z.string(), z.unknown());

export const pageShape = {
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).max(1_000_000_000).default(0),
};

const versionSchema = z.looseObject({
  assistant_id: z.string(),
  graph_id: z.string(),
  version: z.int(),
  config: json,
  context: json,
  metadata: json,
  name: z.string(),
  description: z.string().nullable(),
  created_at: z.string(),
});
/** JSON whose text is made by the database. */
export const assistantResponse = {
  textType: 'application/json',
  schema: versionSchema.extend({ updated_at: z.string() }).meta({ id: 'Assistant' }),
};
/** With `select`, of some of the fields. */
export const assistantList = { textType: 'application/json', schema: z.array(json) };
export const versionList = {
  textType: 'application/json',
  schema: z.array(versionSchema.meta({ id: 'AssistantVersion' })),
};

/** Throws DomainError `not_found` for what is neither an id nor a graph. */
export function idOf({ graphs }: Pick<Deployment, 'graphs'>, text: string): string {
  const id = toAssistantId(graphs, text);
  if (id === undefined) throw noAssistant();
  return id;
}

export function noAssistant(): DomainError {
  return new DomainError('not_found', 'There is no such assistant');
}

/** Throws DomainError `not_found` for a graph that is not served. */
export function requireGraph({ graphs }: Pick<Deployment, 'graphs'>, graphId: string | undefined): void {
  if (graphId !== undefined && !graphs.has(graphId))
    throw new DomainError('not_found', 'There is no such graph: graph_id must be one of the configuration');
}

/** As the authorization handler left it; undefined where there is none. Throws InvalidInput. */
export function metadataOf(value: Readonly<Record<string, unknown>>): string | undefined {
  const metadata = value['metadata'];
  if (metadata === undefined || metadata === null) return undefined;
  const text = JSON.stringify(metadata);
  requireSmallMetadata(text);
  return text;
}

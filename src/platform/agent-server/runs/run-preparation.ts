// What precedes the transaction that creates a run: whether its body is one of this version, which assistant it means, and what
// the authorization handler says.
import { randomUUIDv7 } from 'node:crypto';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';
import { isObject } from '../../../base/json/json-document.ts';
import type { AgentGrant } from '../access/gate.ts';
import { partyOf } from '../access/run-users.ts';
import { isDefaultAssistant, toAssistantId } from '../assistants/assistant-id.ts';
import { requireSmallMetadata } from '../metadata.ts';
import type { ReservedPlace } from '../queue/reserved-place.ts';
import { noAssistant } from './assistant-to-run.ts';
import { requireSupported, type RunBody } from './run-body.ts';
import type { NewRun } from './run-creation.ts';
import type { RunRouteParts } from './run-parts.ts';

type Call = AgentGrant & { readonly body: RunBody; readonly signal: AbortSignal };

export type PreparedRun = Pick<
  NewRun,
  'runId' | 'threadId' | 'metadata' | 'filter' | 'assistantFilter' | 'assistantId' | 'user'
> & {
  /** Undefined where it is to wait in any case. */
  readonly place: ReservedPlace | undefined;
};

export async function prepareRun(
  parts: RunRouteParts,
  call: Call,
  threadId: string | undefined,
): Promise<PreparedRun> {
  const { gate, deployment, vault } = parts;
  const { body } = call;
  requireSupported(body);
  parts.backlog.requirePlace();
  const assistantId = toAssistantId(deployment.graphs, body.assistant_id);
  if (assistantId === undefined) throw noAssistant();
  const runId = randomUUIDv7();
  const [{ filter, value }, assistants] = await Promise.all([
    gate.authorize(call, 'threads:create_run', toValue(body, { threadId, runId, assistantId })),
    // The config of an assistant shows in its runs: whoever may not read it cannot run it.
    isDefault(parts, assistantId)
      ? undefined
      : gate.authorize(call, 'assistants:read', ofAssistant(assistantId)),
    vault.prepare(),
  ]);
  const metadata = isObject(value['metadata']) ? value['metadata'] : {};
  requireSmallMetadata(JSON.stringify(metadata));
  const user = { user: call.user, headers: call.headers };
  return {
    ...{ runId, threadId, assistantId, filter, assistantFilter: assistants?.filter },
    ...{ metadata, user },
    // As the last thing: nothing that follows fails before the route gives it back.
    place: (body.after_seconds ?? 0) === 0 ? parts.queue.reserve(partyOf(user)) : undefined,
  };
}

function isDefault({ deployment }: RunRouteParts, assistantId: string): boolean {
  return [...deployment.graphs.keys()].some((graphId) => isDefaultAssistant(graphId, assistantId));
}

function ofAssistant(assistantId: string): JsonObject {
  return { assistant_id: assistantId, metadata: {} };
}

type Ids = {
  readonly threadId: string | undefined;
  readonly runId: string;
  readonly assistantId: string;
};

/** As handlers know it. */
function toValue(body: RunBody, { threadId, runId, assistantId }: Ids): JsonObject {
  const { metadata, multitask_strategy: strategy, if_not_exists, after_seconds, ...kwargs } = body;
  return {
    thread_id: threadId ?? null,
    assistant_id: assistantId,
    run_id: runId,
    status: 'pending',
    metadata: metadata ?? {},
    prevent_insert_if_inflight: strategy === 'reject',
    multitask_strategy: strategy ?? 'enqueue',
    if_not_exists: if_not_exists ?? 'reject',
    after_seconds: after_seconds ?? 0,
    kwargs,
  };
}

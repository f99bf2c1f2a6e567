// Threads and runs, inserted directly into the tables of an agent server.
import { randomUUID } from 'node:crypto';
import type { Store } from '../../src/platform/store/database.ts';
import '../../src/platform/agent-server/assistants/assistant-rows.ts';
import type { RunStatus } from '../../src/platform/agent-server/runs/run-rows.ts';
import type { ThreadStatus } from '../../src/platform/agent-server/threads/thread-rows.ts';

export type AgentRows = {
  addAssistant(graphId?: string): Promise<string>;
  addThread(given?: {
    readonly status?: ThreadStatus;
    readonly metadata?: object;
    readonly isTemporary?: boolean;
  }): Promise<string>;
  /** A running one has a lease for an hour. */
  addRun(
    threadId: string,
    given?: {
      readonly status?: RunStatus;
      readonly attempt?: number;
      readonly graphId?: string;
      readonly assistantId?: string;
    },
  ): Promise<string>;
};

export function createAgentRows({ db }: Pick<Store, 'db'>): AgentRows {
  const addAssistant = async (graphId = 'agent'): Promise<string> => {
    const row = { graph_id: graphId, name: graphId, description: null };
    const insert = db.insertInto('agent_assistants').values(row).returning('assistant_id');
    return (await insert.executeTakeFirstOrThrow()).assistant_id;
  };
  return {
    addAssistant,
    async addThread({ status = 'idle', metadata = {}, isTemporary = false } = {}) {
      const row = { status, metadata: JSON.stringify(metadata), is_temporary: isTemporary };
      const insert = db.insertInto('agent_threads').values(row).returning('thread_id');
      return (await insert.executeTakeFirstOrThrow()).thread_id;
    },
    async addRun(threadId, { status = 'running', attempt = 1, graphId = 'agent', assistantId } = {}) {
      const runId = randomUUID();
      const hasLease = status === 'running';
      const row = {
        ...{ run_id: runId, thread_id: threadId, graph_id: graphId, status, attempt, kwargs: '{}' },
        assistant_id: assistantId ?? (await addAssistant(graphId)),
        ...{ assistant_version: 1, multitask_strategy: 'enqueue' as const },
        lease_owner: hasLease ? randomUUID() : null,
        lease_until: hasLease ? new Date(Date.now() + 3_600_000) : null,
      };
      await db.insertInto('agent_runs').values(row).execute();
      return runId;
    },
  };
}

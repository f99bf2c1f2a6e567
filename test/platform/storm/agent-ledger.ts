// What the clients of a storm of agent servers have asked for and got.

export type Job = {
  readonly name: string;
  readonly user: string;
  readonly kind: 'work' | 'ask' | 'resume';
  /** Undefined: without a thread of its own. */
  readonly threadId: string | undefined;
  /** How it was asked for, for the messages. */
  readonly how: string;
  runId?: string;
  /** The server has responded with the run, refused it, or its response was lost. */
  outcome: 'sent' | 'accepted' | 'refused' | 'lost';
  /** Somebody has asked for its removal. */
  mayBeGone: boolean;
  /** Somebody has asked for its end. */
  mayBeInterrupted: boolean;
  /** The steps of the state that its client has got at the end. */
  result?: readonly string[];
  /** `{error, message}` in place of it. */
  error?: string;
};

export type AgentLedger = {
  readonly jobs: Job[];
  readonly errors: string[];
  readonly counts: Map<string, number>;
};

export function createAgentLedger(): AgentLedger {
  return { jobs: [], errors: [], counts: new Map() };
}

export function count({ counts }: AgentLedger, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

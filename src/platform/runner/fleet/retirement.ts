// How an agent server ends that the gateway sends nothing to any more: what it has begun goes on for a while, then its runs go back to the
// queue, from which the next one takes them.
import { setTimeout as delay } from 'node:timers/promises';
import type { TargetTable } from '../../deployment-gateway/target-table.ts';
import type { AgentProcess } from '../instances/agent-process.ts';

export type Retirement = {
  readonly targets: Pick<TargetTable, 'handedOver' | 'drained'>;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  readonly drainMs?: number;
};

const DRAIN_MS = 180_000;
const GRACE_MS = 10_000;
const LOOK_MS = 250;

/** Never rejects. Resolves when nothing of it runs. */
export async function retire(agent: AgentProcess, retirement: Retirement): Promise<void> {
  const { targets, signal, drainMs = DRAIN_MS } = retirement;
  const gone = new AbortController();
  void agent.ended.then(() => gone.abort());
  const until = AbortSignal.any([signal, gone.signal, AbortSignal.timeout(drainMs)]);
  try {
    await Promise.race([targets.handedOver(agent.served.id), whenAborted(until)]);
    // One that does not respond is ended below.
    await agent.control.drain();
    await targets.drained(agent.served.id, until);
    while (!until.aborted && !(await isIdle(agent))) await delay(LOOK_MS, undefined, { signal: until });
  } catch {
    // Given up, or it does not respond: what runs in it is as lost as in one that ended.
  }
  await agent.stop(signal.aborted ? 0 : GRACE_MS);
}

/** One that reads nothing may hold what is on its way. */
function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
}

async function isIdle({ control }: AgentProcess): Promise<boolean> {
  const { requests, runs } = await control.status();
  return requests === 0 && runs === 0;
}

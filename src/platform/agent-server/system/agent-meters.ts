// What the agent server counts besides requests: runs, their queue, and workers. Labels are bounded: no name of a graph, a user or a thread.
import type { Meters } from '../../api/metrics.ts';
import type { Backlog } from '../queue/backlog.ts';
import type { Concluded } from '../queue/conclusion.ts';
import type { RunQueue } from '../queue/run-queue.ts';
import type { ExitReason } from '../workers/worker-exit.ts';

export type AgentMeters = {
  onAttempt(concluded: Concluded): void;
  onWorkerStart(): void;
  onWorkerExit(reason: ExitReason): void;
  watch(watched: Watched): void;
};

type Watched = {
  readonly queue: Pick<RunQueue, 'running'>;
  readonly backlog: Pick<Backlog, 'waiting' | 'oldestSeconds'>;
  readonly places: number;
};

export function createAgentMeters(meters: Meters): AgentMeters {
  const ended = meters.counter('agent_runs_ended_total', 'Runs that this process has executed to their end', [
    'status',
  ]);
  const returned = meters.counter(
    'agent_run_attempts_unfinished_total',
    'Attempts of this process that have not ended their run: given back to the queue, or lost to another process',
    ['reason'],
  );
  const starts = meters.counter('agent_worker_starts_total', 'Processes of workers that were started', []);
  const exits = meters.counter('agent_worker_exits_total', 'Processes of workers that have ended', [
    'reason',
  ]);
  return {
    onAttempt: (concluded) =>
      concluded.kind === 'ended' ? ended({ status: concluded.status }) : returned({ reason: concluded.kind }),
    onWorkerStart: () => starts({}),
    onWorkerExit: (reason) => exits({ reason }),
    watch({ queue, backlog, places }) {
      const { gauge } = meters;
      gauge('agent_run_places', 'Runs that this process executes at most at a time', () => places);
      gauge('agent_runs_running', 'Runs that this process executes', () => queue.running);
      gauge(
        'agent_runs_waiting',
        'Runs in the database that wait to be executed, scheduled ones among them, as last counted',
        () => backlog.waiting,
      );
      gauge(
        'agent_oldest_waiting_run_age_seconds',
        'How long the run that has waited longest in the database has been due; 0 where none waits',
        () => backlog.oldestSeconds,
      );
    },
  };
}

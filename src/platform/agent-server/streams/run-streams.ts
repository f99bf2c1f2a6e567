// The events of runs: written by the process that executes a run, read by any process of the database.
import type { JsonText, WorkerEvent } from '../../../agent-worker/protocol/messages.ts';

export type RunEvent = {
  /** `0`, `1`, `2` …, going on over the attempts of the run. */
  readonly id: string;
  readonly event: string;
  readonly data: JsonText;
};

export type ClaimedRun = {
  readonly runId: string;
  readonly threadId: string;
  readonly attempt: number;
  readonly isResumable: boolean;
  /** Of its row: the process whose client reads it from its first event on. */
  readonly streamedBy: string | null;
};

export type RunEventWriter = {
  /**
   * Resolves when the events are stored, where they have to be, and handed on: then more may come. Rejects with a LostRun when
   * another process has taken the run over. The event `error` of a run is written before the commit that ends the run.
   */
  write(events: readonly WorkerEvent[]): Promise<void>;
  /** After the commit that ended the run. */
  end(): Promise<void>;
  /** The run has not ended: it was given back or taken over, and its readers wait for its next attempt. */
  release(): Promise<void>;
};

export type ReadOptions = {
  /** The last event that is known; `-1` is before all of them. Absent: from now on, and what nobody has read yet. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
  /** Of the stream modes, these alone; all when absent. */
  readonly modes?: ReadonlySet<string> | undefined;
};

export type RunStreams = {
  /** Of this process, as `agent_runs.streamed_by` names it. */
  readonly processId: string;
  /** In the executing process, after the claim. Writes the event `metadata`. */
  open(run: ClaimedRun): Promise<RunEventWriter>;
  /** In any process: several events at a time, until the run has ended. A run that does not exist has ended. */
  read(runId: string, options: ReadOptions): AsyncIterable<readonly RunEvent[]>;
  /** In any process: resolves when the run has a final status or is deleted, or when the signal aborts. */
  ended(runId: string, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

// What a worker may take of this machine and of this process, and how long it is waited for.

export type WorkerLimits = {
  /** At most so many processes; one more for each that does not respond. */
  readonly workers: number;
  /** Of the JavaScript heap of one worker. */
  readonly heapMegabytes: number;
  /** From the start of a process until its graphs are loaded. */
  readonly startMs: number;
  readonly pingMs: number;
  /** Without a response to a ping: it gets no new work. */
  readonly blockedMs: number;
  /** Then it is ended. */
  readonly killMs: number;
  /** For a run that was cancelled to end; then what it still does is discarded. */
  readonly cancelMs: number;
  /** Of one worker, that nobody waits for and that have not ended: with more of them it is replaced when nothing else runs. */
  readonly abandonedCalls: number;
  /** Of the checkpoints that one worker stores at a time: above it nothing more is read of the worker. */
  readonly askedBytes: number;
  /** For a worker that can take a call. */
  readonly waitMs: number;
  /** Between the starts of workers that end soon: doubled from the first to the second. */
  readonly backoffMs: readonly [first: number, longest: number];
  /** What all workers together may use of one turn of the event loop. */
  readonly turnMs: number;
};

export const defaultWorkerLimits: Omit<WorkerLimits, 'workers'> = {
  heapMegabytes: 1024,
  startMs: 60_000,
  pingMs: 250,
  blockedMs: 2_000,
  killMs: 30_000,
  cancelMs: 5_000,
  abandonedCalls: 100,
  askedBytes: 128 * 1024 * 1024,
  waitMs: 30_000,
  backoffMs: [100, 5_000],
  turnMs: 5,
};

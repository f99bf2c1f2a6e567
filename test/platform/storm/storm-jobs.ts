// Checks the jobs of a storm. Each job runs somewhere until the storm ends, so a job whose process was killed must start
// again, and no job may run twice at once. Pure: returns the errors and the measured times.

export type JobEvent = {
  readonly job: string;
  /** The name of the process. */
  readonly life: string;
  readonly atMs: number;
  readonly what: 'started' | 'done';
};

export type JobResult = {
  readonly errors: readonly string[];
  /** From each death to the next start of the job that it interrupted. */
  readonly rerunsMs: readonly number[];
};

export const MAX_RERUN_MS = 15_000;

/** `deaths` by life. */
export function checkJobs(
  jobs: readonly string[],
  events: readonly JobEvent[],
  deaths: ReadonlyMap<string, number>,
): JobResult {
  const rerunsMs: number[] = [];
  const errors = jobs.flatMap((job) => {
    const own = events.filter((event) => event.job === job).toSorted((a, b) => a.atMs - b.atMs);
    const done = own.filter(({ what }) => what === 'done').length;
    const started = own.filter(({ what }) => what === 'started');
    return [
      ...(started.length === 0 ? [`job ${job} was never started`] : []),
      ...(done === 1 ? [] : [`job ${job} was done ${done} times`]),
      ...started.flatMap((event, i) => checkRun(event, started[i + 1], deaths.get(event.life), rerunsMs)),
    ];
  });
  return { errors, rerunsMs };
}

function checkRun(
  { job, life }: JobEvent,
  next: JobEvent | undefined,
  diedMs: number | undefined,
  rerunsMs: number[],
): readonly string[] {
  // The last run is the one that finished.
  if (next === undefined) return [];
  if (diedMs === undefined || next.atMs < diedMs)
    return [`job ${job} was started by ${next.life} while it ran in ${life}`];
  const ms = next.atMs - diedMs;
  rerunsMs.push(ms);
  return ms <= MAX_RERUN_MS ? [] : [`job ${job} was started again ${ms} ms after the end of ${life}`];
}

// What became of the jobs of a storm: each is under way somewhere until the storm is over, so one whose process was
// killed has to begin again, and none may be under way twice. Values in, faults and figures out.
export type JobEvent = {
  readonly job: string;
  /** The process. */
  readonly life: string;
  readonly atMs: number;
  readonly what: 'begun' | 'done';
};

export type JobAccount = {
  readonly errors: readonly string[];
  /** From each death to the next beginning of the job that it interrupted. */
  readonly rerunsMs: readonly number[];
};

export const MAX_RERUN_MS = 15_000;

/** `deaths` by life. */
export function judgeJobs(
  jobs: readonly string[],
  events: readonly JobEvent[],
  deaths: ReadonlyMap<string, number>,
): JobAccount {
  const rerunsMs: number[] = [];
  const errors = jobs.flatMap((job) => {
    const own = events.filter((event) => event.job === job).toSorted((a, b) => a.atMs - b.atMs);
    const done = own.filter(({ what }) => what === 'done').length;
    const begun = own.filter(({ what }) => what === 'begun');
    return [
      ...(begun.length === 0 ? [`job ${job} was never begun`] : []),
      ...(done === 1 ? [] : [`job ${job} was done ${done} times`]),
      ...begun.flatMap((event, i) => judgeRun(event, begun[i + 1], deaths.get(event.life), rerunsMs)),
    ];
  });
  return { errors, rerunsMs };
}

function judgeRun(
  { job, life }: JobEvent,
  next: JobEvent | undefined,
  diedMs: number | undefined,
  rerunsMs: number[],
): readonly string[] {
  // The last one is the one that was done.
  if (next === undefined) return [];
  if (diedMs === undefined || next.atMs < diedMs)
    return [`job ${job} was begun by ${next.life} while it was under way in ${life}`];
  const ms = next.atMs - diedMs;
  rerunsMs.push(ms);
  return ms <= MAX_RERUN_MS ? [] : [`job ${job} was begun again ${ms} ms after the end of ${life}`];
}

// Whether what an agent server has responded is true after all that was killed: of each run its ends, its order and its steps, of
// each thread its state. Pure.
import { ASK, entryOf, RESUMED, WORK } from './agent-deployment.ts';
import type { Change } from './agent-changes.ts';
import type { Job } from './agent-ledger.ts';

export type EndedRun = {
  readonly job: string;
  readonly threadId: string;
  readonly status: string;
  readonly losses: number;
};

const MAX_FREE_MS = 15_000;
const MAX_LOSSES = 3;
const GROUPS = { work: WORK, ask: ASK, resume: RESUMED };

function isFinal({ status, kind }: Change): boolean {
  return kind === 'DELETE' || (status !== 'pending' && status !== 'running');
}

function groupsOf({ kind, name, user }: Job): readonly (readonly string[])[] {
  return GROUPS[kind].map((nodes) => nodes.map((node) => entryOf(name, node, user)));
}

/** Each run has ended once, and did nothing after that. */
export function checkEnds(changes: readonly Change[]): readonly string[] {
  return [...Map.groupBy(changes, ({ runId }) => runId)].flatMap(([runId, all]) => {
    const at = all.findIndex(isFinal);
    const shown = `run ${runId} (${all[0]?.job}): ${all.map(({ kind, status }) => `${kind} ${status}`).join(', ')}`;
    if (at === -1) return [`not ended: ${shown}`];
    return all.slice(at + 1).every(({ kind }) => kind === 'DELETE') ? [] : [`ended twice: ${shown}`];
  });
}

/** No run of a thread was claimed while one before it had not ended. */
export function checkOrder(changes: readonly Change[]): readonly string[] {
  const errors: string[] = [];
  for (const [threadId, all] of Map.groupBy(changes, (one) => one.threadId)) {
    const open = new Map<string, Change>();
    for (const change of all) {
      if (isFinal(change)) open.delete(change.runId);
      else open.set(change.runId, change);
      if (change.status !== 'running' || isFinal(change)) continue;
      const before = [...open.values()].filter(({ position }) => position < change.position);
      if (before.length > 0)
        errors.push(
          `thread ${threadId}: ${change.job} was claimed before ${before.map(({ job }) => job)} had ended`,
        );
    }
  }
  return errors;
}

export type Takeover = {
  readonly runId: string;
  /** From the end of the process that had it, or since there is a process that could have it, until it could. */
  readonly freeMs: number;
  /** Until another had it, with that time; undefined: it ended without another attempt. */
  readonly claimedMs: number | undefined;
};

type Lives = {
  /** When each process was killed, by its name. */
  readonly deaths: ReadonlyMap<string, number>;
  /** When processes were stopped that went on later. */
  readonly stops?: readonly { readonly life: string; readonly fromMs: number; readonly untilMs: number }[];
  /** When each of them accepted requests. */
  readonly spans: readonly { readonly fromMs: number; readonly untilMs: number }[];
};

/** Of the runs that a process had when it was killed or stopped. */
export function findTakeovers(
  changes: readonly Change[],
  { deaths, stops = [], spans }: Lives,
): readonly Takeover[] {
  return [...Map.groupBy(changes, ({ runId }) => runId)].flatMap(([runId, all]) =>
    all.flatMap((change, index) => {
      const next = all[index + 1];
      if (change.status !== 'running' || next === undefined || next.life === change.life) return [];
      const stop = stops.find(
        ({ life, fromMs, untilMs }) =>
          life === change.life && change.atMs < fromMs && fromMs < next.atMs && next.atMs < untilMs,
      );
      const diedMs = stop?.fromMs ?? deaths.get(change.life);
      if (diedMs === undefined) return [];
      const sinceMs = Math.max(diedMs, change.atMs);
      const claimed = all.slice(index + 1).find(({ status }) => status === 'running');
      const freeMs = next.atMs - Math.max(sinceMs, aloneUntilMs(sinceMs, next.atMs, spans));
      return [{ runId, freeMs, claimedMs: claimed && claimed.atMs - sinceMs }];
    }),
  );
}

/** Until when no process accepted requests the last time between two moments. */
function aloneUntilMs(fromMs: number, untilMs: number, spans: Lives['spans']): number {
  let aloneMs = fromMs;
  let atMs = fromMs;
  for (const span of spans.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (span.fromMs > atMs) aloneMs = Math.min(span.fromMs, untilMs);
    if (span.fromMs >= untilMs) break;
    atMs = Math.max(atMs, span.untilMs);
  }
  return atMs < untilMs ? untilMs : aloneMs;
}

export function checkTakeovers(takeovers: readonly Takeover[]): readonly string[] {
  return takeovers
    .filter(({ freeMs }) => freeMs > MAX_FREE_MS)
    .map(({ runId, freeMs }) => `run ${runId} was free ${freeMs.toFixed(0)} ms after the end of its process`);
}

/** Each run has the status that its client and the kills explain; what was refused was not written. */
export function checkRuns(jobs: readonly Job[], changes: readonly Change[]): readonly string[] {
  const ofJob = Map.groupBy(changes, ({ job }) => job);
  return jobs.flatMap((job) => {
    const all = ofJob.get(job.name) ?? [];
    const ended = all.find(isFinal);
    const shown = `${job.name} (${job.how}, run ${job.runId})`;
    if (job.outcome === 'refused') return all.length > 0 ? [`${shown} was refused and is there`] : [];
    if (ended === undefined)
      return job.outcome === 'accepted' && all.length === 0 ? [`${shown} was never there`] : [];
    if (all.filter(({ kind }) => kind === 'INSERT').length > 1) return [`${shown} was created twice`];
    const isTemporary = job.threadId === undefined;
    if (ended.kind === 'DELETE' && !isTemporary && !job.mayBeGone) return [`${shown} is gone`];
    if (ended.status === 'interrupted' && !job.mayBeInterrupted && !job.mayBeGone)
      return [`${shown} was interrupted`];
    if (ended.status === 'error' && ended.losses < MAX_LOSSES)
      return [`${shown} ended with an error after ${ended.losses} losses: ${job.error}`];
    if (ended.status === 'timeout') return [`${shown} has timed out`];
    return checkResult(job, ended, shown);
  });
}

/** What its client got is what a run of this kind comes to. */
function checkResult(job: Job, ended: Change, shown: string): readonly string[] {
  const { result, error } = job;
  const full = groupsOf(job).flat();
  const isWhole =
    result !== undefined && full.every((entry, index) => result.at(index - full.length) === entry);
  const isSuccess = ended.status === 'success' && ended.kind !== 'DELETE';
  if (isSuccess && error !== undefined) return [`${shown}: its client got ${error}`];
  if (isSuccess && result !== undefined && !isWhole)
    return [`${shown}: its client got ${result.slice(-8).join(', ')}`];
  const isTemporary = ended.kind === 'DELETE' && !job.mayBeGone;
  if (!isTemporary) return [];
  if (error === 'RunLost' && ended.losses >= MAX_LOSSES) return [];
  // Of a creation whose response was lost, nobody knows where its result is.
  if (error === undefined && result === undefined && job.outcome === 'lost') return [];
  return isWhole
    ? []
    : [`${shown}: its client got ${error ?? result?.join(', ')} after ${ended.losses} losses`];
}

/** The state of a thread is exactly the steps of its runs, in order: all of a run that was successful, and whole supersteps of others. */
export function checkThread(
  threadId: string,
  {
    steps,
    runs,
    jobs,
  }: { readonly steps: readonly string[]; readonly runs: readonly EndedRun[]; readonly jobs: readonly Job[] },
): readonly string[] {
  const byName = new Map(jobs.map((job) => [job.name, job]));
  let at = 0;
  for (const { job: name, status } of runs) {
    const job = byName.get(name);
    if (job === undefined) return [`thread ${threadId} has a run of nobody: ${name}`];
    for (const group of groupsOf(job)) {
      const isThere = group.every((entry, index) => steps[at + index] === entry);
      if (isThere) at += group.length;
      else if (status === 'success')
        return [
          `thread ${threadId}: ${name} (${job.how}) is a success without ${group.join(', ')}; ${around(steps, at)}`,
        ];
      else break;
    }
  }
  return at === steps.length ? [] : [`thread ${threadId}: steps of no run; ${around(steps, at)}`];
}

function around(steps: readonly string[], at: number): string {
  return `of ${steps.length} steps, from ${at}: ${steps.slice(Math.max(0, at - 3), at + 6).join(', ') || 'none'}`;
}

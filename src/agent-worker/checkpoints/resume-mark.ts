// Which tasks of a checkpoint have taken the value that a run resumes with. It is written beside the checkpoint, and each task that
// asks takes it once. When the run is lost after a task took it, the same value, given once more, would reach another question of
// that task: so the run leaves a mark of what had been taken before.
import type { PendingWrite } from './checkpoint-tuple.ts';

/** The task of writes that are for whichever task asks next. */
const NO_TASK = '00000000-0000-0000-0000-000000000000';
const RESUME = '__resume__';
const INTERRUPT = '__interrupt__';
const MARK = '__resumed_before__';
/** Of tasks that run again. */
const SPECIAL: ReadonlySet<string> = new Set([RESUME, INTERRUPT, '__error__', '__scheduled__']);

type Interrupt = { readonly id?: string };
type Counts = Readonly<Record<string, number>>;

export function isForAnyTask(taskId: string, channel: string): boolean {
  return taskId === NO_TASK && channel === RESUME;
}

/** Of the command of a run: for any task, or for the task of an interrupt. Tasks themselves are UUIDs. */
export function isOfCommand(taskId: string, channel: string): boolean {
  return isForAnyTask(taskId, channel) || (channel === RESUME && isInterruptId(taskId));
}

export function isInterruptId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text);
}

/** Of the tasks that have not done their work. */
export function findInterrupts(writes: readonly PendingWrite[]): readonly string[] {
  const done = new Set(writes.flatMap(([taskId, channel]) => (SPECIAL.has(channel) ? [] : [taskId])));
  const open = writes.filter(([taskId, channel]) => channel === INTERRUPT && !done.has(taskId));
  return open.flatMap(([, , value]) => (value as Interrupt).id ?? []);
}

/** To be stored under the id of the run, before its value. */
export function createResumeMark(writes: readonly PendingWrite[]): [channel: string, value: Counts] {
  return [MARK, countTaken(writes)];
}

/** The interrupts whose tasks have not taken the value of this run; undefined when no task has. */
export function findOpenInterrupts(
  writes: readonly PendingWrite[],
  runId: string,
): readonly string[] | undefined {
  const mark = writes.find(([taskId, channel]) => taskId === runId && channel === MARK);
  if (mark === undefined) return undefined;
  const before = mark[2] as Counts;
  const now = countTaken(writes);
  const hasTaken = (taskId: string): boolean => (now[taskId] ?? 0) > (before[taskId] ?? 0);
  if (!Object.keys(now).some(hasTaken)) return undefined;
  const open = writes.filter(([taskId, channel]) => channel === INTERRUPT && !hasTaken(taskId));
  return open.flatMap(([, , value]) => (value as Interrupt).id ?? []);
}

function countTaken(writes: readonly PendingWrite[]): Counts {
  const ofTasks = writes.filter(([taskId, channel]) => taskId !== NO_TASK && channel === RESUME);
  return Object.fromEntries(
    ofTasks.map(([taskId, , value]) => [taskId, Array.isArray(value) ? value.length : 1]),
  );
}

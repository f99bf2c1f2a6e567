// Where a later attempt of a run starts. The attempt before it was lost with its worker: whatever it had stored as a checkpoint
// of this run stays, and the graph goes on from there. An interrupt that it had reached is not passed.
import type { CheckpointTuple } from '../checkpoints/checkpoint-tuple.ts';
import { findInterrupts, findOpenInterrupts } from '../checkpoints/resume-mark.ts';
import type { Saver } from '../checkpoints/saver.ts';
import type { RunToStart } from '../protocol/calls.ts';
import type { CompiledGraph, StateSnapshot } from './library.ts';

export type StartPoint =
  /**
   * With the input or the command of the run. The library takes a command whose value to resume with is 0, false or an empty text
   * for one without: only by the interrupts that it is for does the value reach them.
   */
  | { readonly kind: 'beginning'; readonly interrupts?: readonly string[] }
  | { readonly kind: 'checkpoint' }
  /** With what the command resumes with, for these interrupts: other tasks have it already. */
  | { readonly kind: 'resume'; readonly interrupts: readonly string[] }
  /** The run was over but for its end: at a node that it stops before or after. */
  | { readonly kind: 'interrupt'; readonly state: StateSnapshot };

type Nodes = readonly string[] | '*';

export async function findStartPoint(
  run: RunToStart,
  graph: CompiledGraph,
  saver: Saver,
): Promise<StartPoint> {
  if (!run.is_resumed) return begin(run, saver);
  const config = { configurable: { thread_id: run.thread_id, checkpoint_ns: '' } };
  const latest = await saver.getTuple(config);
  if (latest?.metadata['run_id'] !== run.run_id) {
    if (run.checkpoint !== undefined) return begin(run, saver);
    const open = findOpenInterrupts(latest?.pendingWrites ?? [], run.run_id);
    if (open === undefined) return begin(run, saver);
    saver.forgetResume();
    return open.length === 0 ? { kind: 'checkpoint' } : { kind: 'resume', interrupts: open };
  }
  const before = run.interrupt_before ?? graph.interruptBefore ?? [];
  const after = run.interrupt_after ?? graph.interruptAfter ?? [];
  if ((before.length === 0 && after.length === 0) || !hasChanged(latest)) return { kind: 'checkpoint' };
  const state = await graph.getState(config);
  if (state.tasks.length === 0) return { kind: 'checkpoint' };
  const parent = latest.parentConfig === undefined ? undefined : await saver.getTuple(latest.parentConfig);
  const isStopped =
    state.tasks.some(({ name }) => includes(before, name)) ||
    finishedNodes(latest, parent).some((name) => includes(after, name));
  return isStopped ? { kind: 'interrupt', state } : { kind: 'checkpoint' };
}

async function begin({ command, thread_id, checkpoint }: RunToStart, saver: Saver): Promise<StartPoint> {
  const resume: unknown = command === undefined ? undefined : JSON.parse(command).resume;
  if (Boolean(resume) || resume === undefined || resume === null) return { kind: 'beginning' };
  const found = await saver.getTuple({ configurable: { thread_id, checkpoint_ns: '', ...checkpoint } });
  return { kind: 'beginning', interrupts: findInterrupts(found?.pendingWrites ?? []) };
}

/** Whether anything was written since the run last went on from an interrupt: without it the same one would stop it again. */
function hasChanged({ checkpoint }: CheckpointTuple): boolean {
  const seen = checkpoint.versions_seen?.['__interrupt__'] ?? {};
  return Object.entries(checkpoint.channel_versions).some(
    ([channel, version]) => version > (seen[channel] ?? ''),
  );
}

/** The nodes of the step that wrote this checkpoint: those that saw new versions, and those that were sent to. */
function finishedNodes(
  { checkpoint }: CheckpointTuple,
  parent: CheckpointTuple | undefined,
): readonly string[] {
  const seenBefore = parent?.checkpoint.versions_seen ?? {};
  const seen = Object.entries(checkpoint.versions_seen ?? {});
  const triggered = seen.filter(
    ([name, versions]) => JSON.stringify(versions) !== JSON.stringify(seenBefore[name]),
  );
  const sends = parent?.checkpoint.channel_values['__pregel_tasks'];
  const sent = Array.isArray(sends) ? sends.map((send: { readonly node?: string }) => send.node ?? '') : [];
  return [...triggered.map(([name]) => name), ...sent].filter((name) => !name.startsWith('__'));
}

function includes(nodes: Nodes, name: string): boolean {
  return nodes === '*' || nodes.includes(name);
}

// Copies of a compiled graph. Calls that run at the same time have savers of their own, and a graph holds one: each call borrows
// a copy, which later calls use again.
import type { CompiledGraph } from './library.ts';

const copies = new WeakMap<CompiledGraph, CompiledGraph[]>();

export async function withCopy<T>(
  graph: CompiledGraph,
  checkpointer: unknown,
  use: (copy: CompiledGraph) => Promise<T>,
): Promise<T> {
  const free = copies.get(graph) ?? [];
  copies.set(graph, free);
  const copy = free.pop() ?? graph.withConfig({});
  // Also in place of one that the author chose: the server's threads need theirs.
  copy.checkpointer = checkpointer;
  try {
    return await use(copy);
  } finally {
    copy.checkpointer = undefined;
    free.push(copy);
  }
}

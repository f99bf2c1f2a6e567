// Ends everything that a bwrap contains: its child is the first process of a pid namespace.
import { readFileSync } from 'node:fs';

/**
 * Kills the first process of the pid namespace, with which the kernel kills all others, and then bwrap. A bwrap that was killed
 * before it had set up the end of its children leaves them behind: what is left is for `endSurvivors`. `pid`: of a child of ours that
 * has not been waited for.
 */
export function killContained(pid: number): void {
  for (const one of [...childrenOf(pid), pid]) {
    try {
      process.kill(one, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
}

/** Empty for a process that has ended. */
export function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

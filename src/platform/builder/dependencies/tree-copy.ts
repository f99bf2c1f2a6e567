// Puts installed packages into a build. They stay in the cache: a build that goes on gets files of its own, which it may change; one
// that is finished shares the files, which nobody may change.
import { requireTreeCommand } from '../../../workload/tree-command.ts';

const TIMEOUT_MS = 300_000;

/** `source` was sealed. Nothing is at `target`. */
export async function copyTree(source: string, target: string, mode: 'copied' | 'shared'): Promise<void> {
  const how = mode === 'shared' ? ['--link'] : ['--reflink=auto'];
  const command = ['cp', '--archive', ...how, '--no-target-directory', '--', source, target];
  await requireTreeCommand('the installed packages could not be copied', command, { timeoutMs: TIMEOUT_MS });
}

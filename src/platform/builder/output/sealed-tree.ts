// What a build has written becomes ours, and nobody writes to it any more. Its author was hostile code that has ended: there are
// links, special files, bits and owners of any kind, and nothing here follows or keeps them.
import { chmod, lchown } from 'node:fs/promises';
import { requireTreeCommand } from '../../../workload/tree-command.ts';
import type { WorkloadUser } from '../../../workload/workload.ts';

/** Of each program. A build has at most some hundred thousand files. */
const TIMEOUT_MS = 120_000;
const WHAT = 'what the build wrote could not be taken over';

/** `author`: the user of the build; undefined: the user of this process. No process of the build runs. */
export async function sealTree(tree: string, author: WorkloadUser | undefined): Promise<void> {
  const run = (command: readonly string[]): Promise<string> =>
    requireTreeCommand(WHAT, command, { timeoutMs: TIMEOUT_MS });
  // A socket or a pipe would block whoever opens it; a device is the machine's.
  await run([
    'find',
    tree,
    '-xdev',
    '-not',
    '-type',
    'f',
    '-not',
    '-type',
    'd',
    '-not',
    '-type',
    'l',
    '-delete',
  ]);
  if (author !== undefined) {
    // A hard link to a file of somebody else: to change its mode or owner would change that of the other name too.
    await run(['find', tree, '-xdev', '-type', 'f', '-not', '-uid', String(author.uid), '-delete']);
    await run([
      'chown',
      '--recursive',
      '--no-dereference',
      `${process.getuid?.()}:${process.getgid?.()}`,
      '--',
      tree,
    ]);
  }
  await run(['chmod', '--recursive', 'a-st,a-w,a+rX', '--', tree]);
}

/** Back to the user of a build, who changes it then. Nothing in the tree has a name outside of it. */
export async function openTree(tree: string, user: WorkloadUser | undefined): Promise<void> {
  const run = (command: readonly string[]): Promise<string> =>
    requireTreeCommand(WHAT, command, { timeoutMs: TIMEOUT_MS });
  await run(['chmod', '--recursive', 'u+w', '--', tree]);
  if (user !== undefined)
    await run(['chown', '--recursive', '--no-dereference', `${user.uid}:${user.gid}`, '--', tree]);
}

/** `reader` is let in, and nobody else but us. Before each start of an instance: it may have another user after a restart. */
export async function shareTree(tree: string, reader: WorkloadUser | undefined): Promise<void> {
  if (reader !== undefined) await lchown(tree, process.getuid?.() ?? 0, reader.gid);
  await chmod(tree, reader === undefined ? 0o500 : 0o550);
}

/** Of its blocks on disk; a file with several names counts once. */
export async function measureTree(tree: string): Promise<number> {
  const text = await requireTreeCommand('the size of a build is not known', ['du', '-sxB1', '--', tree], {
    timeoutMs: TIMEOUT_MS,
  });
  return Number.parseInt(text, 10);
}

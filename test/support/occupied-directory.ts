// A directory that cannot be removed, as one into which a program still writes: something is mounted in it.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runCommand } from '../../src/box-host/command.ts';

/** Whether the test can run: only root mounts. */
export const canOccupy: boolean =
  process.getuid?.() === 0 && (await runCommand(['unshare', '--mount', '/bin/true'])).code === 0;

/** Returns what frees it. */
export async function occupy(directory: string): Promise<() => Promise<void>> {
  const place = join(directory, 'below');
  await mkdir(place, { recursive: true });
  const mounted = await runCommand(['mount', '-n', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', place]);
  if (mounted.code !== 0) throw new Error(mounted.stderr);
  const free = async (): Promise<void> => {
    await runCommand(['umount', '-n', place]);
  };
  onTestFinished(free);
  return free;
}

// How much disk space directories take that hostile code writes. Counting a tree costs as much as the tree is large, so it is counted when
// the file system has less space than before, and otherwise seldom.
import { statfs } from 'node:fs/promises';
import { runCommand } from '../../box-host/command.ts';

export type DiskUse = { readonly bytes: number; readonly files: number };

/** Of a tree that is as large as any limit allows, on a disk that is busy. */
const DU_MS = 120_000;

/**
 * du walks by descriptors, does not follow links, and counts a file once that has several names. `late`: it took too long. Undefined:
 * nothing could be counted.
 */
export async function measureUse(paths: readonly string[]): Promise<DiskUse | 'late' | undefined> {
  const [bytes, files] = await Promise.all([count(['--block-size=1'], paths), count(['--inodes'], paths)]);
  if (bytes === 'late' || files === 'late') return 'late';
  return bytes === undefined || files === undefined ? undefined : { bytes, files };
}

async function count(
  options: readonly string[],
  paths: readonly string[],
): Promise<number | 'late' | undefined> {
  // Its complaints about what ends meanwhile may be as long as the tree.
  const script = 'exec nice du -xsc "$@" 2>/dev/null';
  const command = ['/bin/sh', '-c', script, 'sh', ...options, '--', ...paths];
  const { code, stdout } = await runCommand(command, [], DU_MS);
  if (code === undefined) return 'late';
  const [, total] = /^(\d+)\ttotal$/m.exec(stdout) ?? [];
  return total === undefined ? undefined : Number(total);
}

/** What is free on the file systems of these paths together. */
export async function readFree(paths: readonly string[]): Promise<DiskUse> {
  const all = await Promise.all(paths.map((path) => statfs(path).catch(() => undefined)));
  const found = all.filter((one) => one !== undefined);
  return {
    bytes: found.reduce((sum, { bfree, bsize }) => sum + bfree * bsize, 0),
    files: found.reduce((sum, { ffree }) => sum + ffree, 0),
  };
}

/** A file of any size takes memory of the machine and time of whoever counts or removes it. */
const BYTES_PER_FILE = 4_096;
const MIN_FILES = 10_000;
const RECOUNT_MS = 60_000;

export function exceeds({ bytes, files }: DiskUse, limitBytes: number): boolean {
  return bytes > limitBytes || files > Math.max(MIN_FILES, limitBytes / BYTES_PER_FILE);
}

export type Measured = { readonly use: DiskUse; readonly free: DiskUse; readonly atMs: number };

/** Whether the limit may be exceeded now: no more can have been written than the file system has less. */
export function needsCount(
  measured: Measured | undefined,
  free: DiskUse,
  nowMs: number,
  limitBytes: number,
): boolean {
  if (measured === undefined || nowMs - measured.atMs > RECOUNT_MS) return true;
  const written = (kind: 'bytes' | 'files'): number => Math.max(0, measured.free[kind] - free[kind]);
  const atMost = {
    bytes: measured.use.bytes + 2 * written('bytes'),
    files: measured.use.files + 2 * written('files'),
  };
  return exceeds(atMost, limitBytes);
}

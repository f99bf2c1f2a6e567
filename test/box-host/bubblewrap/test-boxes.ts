// Boxes of a test, with a snapshot of this machine's /usr that takes no search, and what runs in them.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Box } from '../../../src/box-host/bubblewrap/box.ts';
import { Boxes, type NewBox } from '../../../src/box-host/bubblewrap/boxes.ts';
import type { ProgramExit } from '../../../src/box-host/bubblewrap/box-program.ts';
import { defaultMounts } from '../../../src/box-host/bubblewrap/capabilities.ts';
import { boxEnvironment } from '../../../src/box-host/bubblewrap/environment.ts';
import { HiddenPaths } from '../../../src/box-host/bubblewrap/hidden-paths.ts';
import { linkUsr } from '../../../src/box-host/snapshots/base-snapshot.ts';
import { createScratch, type Scratch } from '../../support/scratch.ts';

export const MEGABYTE: number = 1024 * 1024;

export type TestBoxes = AsyncDisposable & {
  readonly scratch: Scratch;
  readonly boxes: Boxes;
  /** An open box. */
  open(id: string, given?: Partial<NewBox>): Promise<Box>;
};

export async function createTestBoxes(programs: Readonly<Record<string, string>> = {}): Promise<TestBoxes> {
  const scratch = await createScratch();
  const boxes = await openBoxes(scratch.path, programs);
  return {
    scratch,
    boxes,
    async open(id, given = {}) {
      const box = await boxes.create({ ...newBox(id), ...given });
      await box.open();
      return box;
    },
    async [Symbol.asyncDispose]() {
      for (const id of boxes.ids()) await boxes.remove(id);
      await boxes[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** Also by a process that is to be killed. */
export async function openBoxes(
  directory: string,
  programs: Readonly<Record<string, string>> = {},
): Promise<Boxes> {
  const root = join(directory, 'snapshots', 'base', 'root');
  await mkdir(join(root, 'usr'), { recursive: true });
  await linkUsr(root).catch(() => undefined);
  const manifest = { bytes: 0, entries: 0, hostUsr: { hidden: [] } };
  await writeFile(join(directory, 'snapshots', 'base', 'snapshot.json'), JSON.stringify(manifest));
  const storage = process.getuid?.() === 0 ? 'loop' : 'tmpfs';
  // Another file of tests that runs meanwhile has other users.
  const userRange = { first: 200_000 + (process.pid % 500) * 100, count: 100 };
  const userRegistry = join(directory, 'host-users');
  const hidden = new HiddenPaths(async () => []);
  const mounts = defaultMounts(directory);
  return Boxes.open({ directory, mounts, storage, programs, userRange, userRegistry, hidden });
}

export function newBox(id: string): NewBox {
  return {
    id,
    snapshotId: 'base',
    capacityBytes: 16 * MEGABYTE,
    limits: { memBytes: 128 * MEGABYTE, pids: 64, cpuMillicores: 2_000 },
    caBundle: 'certificates\n',
  };
}

export type BoxRun = ProgramExit & { readonly output: string };

/** Runs a shell script to its end; its output goes through the channel. */
export function runInBox(box: Box, script: string, args: readonly string[] = []): Promise<BoxRun> {
  return runProgram(box, ['/bin/sh', '-c', `exec >&3 2>&1 3>&-\n${script}`, 'sh', ...args]);
}

export async function runProgram(
  box: Box,
  command: readonly string[],
  own: Readonly<Record<string, string>> = {},
): Promise<BoxRun> {
  const program = await box.start(command, boxEnvironment({ placeholders: {}, own }));
  let output = '';
  program.channel.setEncoding('utf8').on('data', (piece: string) => (output += piece));
  const closed = new Promise((resolve) => program.channel.once('close', resolve));
  const exit = await program.exited;
  await closed;
  return { ...exit, output };
}

/** Starts a script that runs until it is ended, and waits for its first line. */
export async function startInBox(box: Box, script: string): Promise<string> {
  const command = ['/bin/sh', '-c', `exec >&3 2>&1\n${script}`];
  const program = await box.start(command, boxEnvironment({ placeholders: {}, own: {} }));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let output = '';
  program.channel.setEncoding('utf8').on('data', (piece: string) => {
    output += piece;
    if (output.includes('\n')) resolve(output);
  });
  void program.exited.then(({ lastLines }) => reject(new Error(`it ended: ${output}${lastLines}`)));
  return promise;
}

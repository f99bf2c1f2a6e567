// Workloads of a test, and whether this machine can isolate them. Continuous integration installs what they need, and fails when they
// did not run.
import { appendFileSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createLog } from '../../src/base/log.ts';
import type {
  Workload,
  WorkloadEnd,
  WorkloadIsolation,
  Workloads,
  WorkloadSpec,
} from '../../src/workload/workload.ts';
import { openWorkloads, type WorkloadsOptions } from '../../src/workload/workloads.ts';
import { capabilities } from '../box-host/isolation.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment, program } from '../support/spawned-process.ts';

const NOT_ROOT = 'these tests make host users and mounts: run them as root';
const isRoot = process.getuid?.() === 0;

/** Why workloads of each isolation cannot be tested here. */
const missing: Readonly<Record<WorkloadIsolation, string | undefined>> = {
  bubblewrap: capabilities.obstacles[0] ?? (isRoot ? undefined : NOT_ROOT),
  user: isRoot ? undefined : NOT_ROOT,
  none: undefined,
};

export function isMissing(isolation: WorkloadIsolation): boolean {
  return missing[isolation] !== undefined;
}

/** For a title: with the reason if the tests cannot run. */
export function titled(title: string, isolation: WorkloadIsolation): string {
  const reason = missing[isolation];
  return reason === undefined ? title : `${title} (skipped: ${reason})`;
}

/** Continuous integration reads it. */
export function recordRun(isolation: WorkloadIsolation): void {
  const file = process.env['SALLYPORT_CLIENTS_RAN'];
  if (file !== undefined) appendFileSync(file, `workload-${isolation}\n`);
}

export type TestWorkloads = AsyncDisposable & {
  readonly workloads: Workloads;
  /** Of `openWorkloads`. */
  readonly directory: string;
  /** Every host user can enter it. */
  readonly scratch: string;
  readonly log: readonly string[];
  /** With the given options over those of the tests. */
  start(spec: Partial<WorkloadSpec>): Promise<Started>;
};

export type Started = {
  readonly workload: Workload;
  /** Of standard output. */
  readonly lines: readonly string[];
  readonly complaints: readonly string[];
  readonly ended: Promise<WorkloadEnd>;
  /** Resolves with the first line of standard output that contains this. */
  line(text: string): Promise<string>;
};

let count = 0;

/** Options for a directory of its own. */
export async function createOptions(
  isolation: WorkloadsOptions['isolation'],
  sidecarConfig: Readonly<Record<string, unknown>> = {},
  given: Partial<WorkloadsOptions> = {},
) {
  const scratch = await createScratch();
  await chmod(scratch.path, 0o711);
  const directory = join(scratch.path, 'workloads');
  const log: string[] = [];
  count += 1;
  const options: WorkloadsOptions = {
    directory,
    isolation,
    isExposed: false,
    sidecar: { command: [process.execPath, program], config: sidecarConfig, env: cleanEnvironment() },
    log: createLog('info', { write: (line) => void log.push(line) }),
    // Nobody else has them while this file runs: what runs as them is killed.
    users: { first: 330_000 + (process.pid % 5_000) * 128 + (count % 8) * 16, count: 16 },
    userRegistry: join(scratch.path, 'registry'),
    ...given,
  };
  return { options, scratch, log };
}

export async function openTestWorkloads(
  isolation: WorkloadsOptions['isolation'],
  sidecarConfig: Readonly<Record<string, unknown>> = {},
  given: Partial<WorkloadsOptions> = {},
): Promise<TestWorkloads> {
  const { options, scratch, log } = await createOptions(isolation, sidecarConfig, given);
  const workloads = await openWorkloads(options);
  return {
    workloads,
    directory: options.directory,
    scratch: scratch.path,
    log,
    start: (spec) => startWorkload(workloads, spec),
    async [Symbol.asyncDispose]() {
      await workloads.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

export async function startWorkload(workloads: Workloads, spec: Partial<WorkloadSpec>): Promise<Started> {
  const lines: string[] = [];
  const complaints: string[] = [];
  let wake = Promise.withResolvers<void>();
  const { onLine, ...given } = spec;
  count += 1;
  const workload = await workloads.start({
    id: `w-${process.pid}-${count}`,
    command: ['/usr/bin/true'],
    cwd: '/',
    env: {},
    mounts: [],
    limits: {},
    network: 'none',
    ...given,
    onLine(stream, line, isTruncated) {
      onLine?.(stream, line, isTruncated);
      (stream === 'stdout' ? lines : complaints).push(line);
      wake.resolve();
      wake = Promise.withResolvers();
    },
  });
  void workload.ended.then(() => wake.resolve());
  return {
    workload,
    lines,
    complaints,
    ended: workload.ended,
    async line(text) {
      let hasEnded = false;
      void workload.ended.then(() => (hasEnded = true));
      for (;;) {
        const found = lines.find((line) => line.includes(text));
        if (found !== undefined) return found;
        if (hasEnded)
          throw new Error(`it ended without the line ${text}: ${[...lines, ...complaints].join('\n')}`);
        await wake.promise;
      }
    },
  };
}

/** A shell script as a workload. */
export function script(text: string, ...args: readonly string[]): Pick<WorkloadSpec, 'command'> {
  return { command: ['/bin/sh', '-c', text, 'sh', ...args] };
}

/** An empty directory in the scratch of the test. */
export async function createDirectory(scratch: string, name: string): Promise<string> {
  const path = join(scratch, name);
  await mkdir(path, { mode: 0o755 });
  await chmod(path, 0o755);
  return path;
}

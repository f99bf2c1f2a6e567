// Workloads of tests that are about something else: processes of this machine without isolation, each in a group of its own.
import { spawn } from 'node:child_process';
import { LineReader } from '../../../src/workload/output/line-reader.ts';
import type { Workload, WorkloadEnd, Workloads, WorkloadSpec } from '../../../src/workload/workload.ts';

export type PlainWorkloads = Workloads & {
  /** In their order. */
  readonly started: readonly WorkloadSpec[];
};

export function createPlainWorkloads(): PlainWorkloads {
  const started: WorkloadSpec[] = [];
  const owners = new Set<string>();
  const running = new Set<Workload>();
  return {
    ...{ started, owners, isolation: 'none', hasOwnFiles: false, hasOwnNetwork: false },
    capabilities: () => ({ isolation: 'none', notes: [], version: undefined }),
    async userOf(owner) {
      owners.add(owner);
      return undefined;
    },
    async releaseUser(owner) {
      owners.delete(owner);
    },
    async start(spec) {
      started.push(spec);
      const workload = await startProcess(spec);
      running.add(workload);
      void workload.ended.then(() => running.delete(workload));
      return workload;
    },
    cleanup: async () => undefined,
    async close() {
      await Promise.all([...running].map((one) => one.stop(0)));
    },
  };
}

async function startProcess(spec: WorkloadSpec): Promise<Workload> {
  const [program = '', ...args] = spec.command;
  const env = { HOME: '/nonexistent', ...spec.env };
  const child = spawn(program, args, {
    cwd: spec.cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const readers = (
    [
      ['stdout', child.stdout],
      ['stderr', child.stderr],
    ] as const
  ).map(
    ([name, stream]) =>
      new LineReader(stream, ({ text, isTruncated }) => spec.onLine(name, text, isTruncated)),
  );
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  let reason: WorkloadEnd['reason'];
  const end = (why: NonNullable<typeof reason>): void => {
    reason ??= why;
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // It has just ended.
    }
  };
  const late = setTimeout(() => end('timeout'), spec.timeoutMs ?? 60_000);
  const ended = new Promise<WorkloadEnd>((resolve) => {
    child.once('exit', async (code, signal) => {
      clearTimeout(late);
      await Promise.all(readers.map((reader) => reader.end()));
      resolve({ code, signal, reason });
    });
  });
  return {
    ...{
      id: spec.id,
      pid: child.pid ?? 0,
      held: { isolation: 'none', notes: ['nothing isolates it'] },
      ended,
    },
    async stop() {
      end('stopped');
      return ended;
    },
    applyPolicy: async () => undefined,
    memoryBytes: async () => undefined,
  };
}

// Workloads that are processes of this user with nothing around them, for tests of what starts them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { PolicyDocument } from '../../src/box-host/box-document.ts';
import type { Workload, WorkloadEnd, Workloads, WorkloadSpec } from '../../src/workload/workload.ts';

export type PlainWorkloads = Workloads & {
  /** All that were started, in their order. */
  readonly started: readonly (Workload & {
    readonly spec: WorkloadSpec;
    readonly policies: readonly PolicyDocument[];
  })[];
};

export function openPlainWorkloads(): PlainWorkloads {
  const started: PlainWorkloads['started'][number][] = [];
  const owners = new Set<string>();
  return {
    ...{ isolation: 'none', hasOwnFiles: false, hasOwnNetwork: false, started, owners },
    capabilities: () => ({ isolation: 'none', notes: [], version: undefined }),
    async userOf(owner) {
      owners.add(owner);
      return undefined;
    },
    async releaseUser(owner) {
      owners.delete(owner);
    },
    async start(spec) {
      const workload = await start(spec);
      started.push(workload);
      return workload;
    },
    cleanup: async () => undefined,
    async close() {
      await Promise.all(started.map((one) => one.stop(0)));
    },
  };
}

async function start(spec: WorkloadSpec): Promise<PlainWorkloads['started'][number]> {
  const [file = '', ...args] = spec.command;
  const child = spawn(file, args, {
    ...{ cwd: spec.cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
    env: { PATH: process.env['PATH'], ...spec.env },
  });
  const closed = new Promise<WorkloadEnd>((resolve) =>
    child.once('close', (code, signal) =>
      resolve({ code, signal, ...(isStopped && { reason: 'stopped' as const }) }),
    ),
  );
  let isStopped = false;
  await once(child, 'spawn');
  const input = child.stdio[3] as Writable;
  input.on('error', () => undefined).end(spec.input ?? '');
  for (const stream of ['stdout', 'stderr'] as const)
    createInterface({ input: child[stream] as Readable }).on('line', (line) =>
      spec.onLine(stream, line, false),
    );
  const policies: PolicyDocument[] = [];
  const kill = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-Number(child.pid), signal);
    } catch {
      // It has ended.
    }
  };
  return {
    ...{ id: spec.id, pid: Number(child.pid), spec, policies, ended: closed },
    held: { isolation: 'none', notes: ['nothing isolates it'] },
    async stop(graceMs) {
      isStopped = true;
      kill('SIGTERM');
      const timer = setTimeout(() => kill('SIGKILL'), graceMs);
      await closed;
      clearTimeout(timer);
      return closed;
    },
    applyPolicy: async (policy) => void policies.push(policy),
    memoryBytes: async () => undefined,
  };
}

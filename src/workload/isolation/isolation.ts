// What isolates workloads on this machine, behind the same calls for each of the ways: how a program is started, where its sidecar
// listens, and how everything that it started is ended.
import type { OpenNamespaces } from '../../box-host/bubblewrap/namespaces/open-namespace.ts';
import type { ProcessLimits } from '../../box-host/cgroup/resource-limits.ts';
import type { BoxListen } from '../../box-host/engine.ts';
import type { NamespaceListener } from '../../box-host/listeners/namespace-listener.ts';
import type { ProcessTable } from '../limits/process-table.ts';
import type { WorkloadIsolation, WorkloadMount, WorkloadUser } from '../workload.ts';

/** Of one workload, on the machine. */
export type WorkloadFiles = {
  readonly directory: string;
  /** Those that it may write to and that are gone with it. */
  readonly temporary: string;
  readonly longTemporary: string;
  /** The certificates that it trusts; a file, also without a sidecar. */
  readonly bundle: string;
};

/** The network of one workload. */
export type NetworkPlace = {
  /** Undefined: that of the machine. */
  readonly namespaces: OpenNamespaces | undefined;
  /** Where a sandbox serves the workload; at most once. */
  openListen(): Promise<BoxListen>;
  /** A socket that listens on the loopback of the workload, and belongs to the caller. Undefined: it has none of its own. */
  readonly openPort: ((port: number) => Promise<NamespaceListener>) | undefined;
  /** By which its clients use the proxy that `openListen` is for: `url` of the sandbox, and its token. */
  proxyUrl(url: string, token: string): string;
  close(): void;
};

export type LaunchPlan = {
  readonly id: string;
  readonly command: readonly string[];
  readonly mounts: readonly WorkloadMount[];
  readonly user: WorkloadUser | undefined;
  readonly files: WorkloadFiles;
  readonly network: NetworkPlace;
  /** See `Cgroups.entryFiles`. */
  readonly cgroupFiles: readonly string[];
  /** Of each process; `processes` where no group limits them. */
  readonly limits: ProcessLimits;
};

export type Launch = {
  readonly command: readonly string[];
  /** From 5 on: one of this process, or a text to read. */
  readonly descriptors: readonly (number | { readonly text: string })[];
  /** Closes what was opened for the start. */
  close(): void;
};

export type ProgramExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** A program that was started, by the process of its `StartedProgram`. */
export type Containment = {
  /** Of the program, by that of the process. */
  exitOf(exit: ProgramExit): ProgramExit;
  /** To the program itself. */
  signal(signal: NodeJS.Signals): void;
  /** Kills everything that can be found now. */
  kill(): void;
  /** The process has ended. Resolves when nothing of the workload runs; rejects if something does not end. */
  empty(): Promise<void>;
  processes(table: ProcessTable): readonly number[];
};

export type Isolation = {
  readonly kind: WorkloadIsolation;
  /** Of bwrap. */
  readonly version?: string | undefined;
  /** Where programs find their temporary files and certificates. */
  pathsOf(files: WorkloadFiles): { readonly temporary: string; readonly bundle: string };
  openNetwork(): Promise<NetworkPlace>;
  launch(plan: LaunchPlan): Launch;
  contain(plan: LaunchPlan, pid: number): Containment;
  close(): Promise<void>;
};

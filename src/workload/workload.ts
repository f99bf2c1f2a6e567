// The contract of workloads: one program of somebody else that runs isolated from this machine and from every other one. What
// its starter asks for, and what the starter holds then.
import type { PolicyDocument } from '../box-host/box-document.ts';

/**
 * `bubblewrap`: namespaces of its own, a system that it sees read-only, and a sandbox of a sidecar as its only way out. `user`: a host
 * user of its own, who may use the network of the machine. `none`: nothing keeps it from what this process may do.
 */
export type WorkloadIsolation = 'bubblewrap' | 'user' | 'none';

/** Of the machine, without an account. */
export type WorkloadUser = { readonly uid: number; readonly gid: number };

export type WorkloadMount = {
  /** An existing path of the machine without symbolic links. Nothing above it may be writable for a workload. */
  readonly source: string;
  /** Where the program sees it. It must be `source` unless `Workloads.hasOwnFiles`. */
  readonly target: string;
  /** By default the program may only read it. */
  readonly writable?: boolean;
};

export type WorkloadLimits = {
  readonly cpuMillicores?: number | undefined;
  readonly memBytes?: number | undefined;
  /** Processes and threads. */
  readonly pids?: number | undefined;
  /** Of what it writes: its writable mounts and its temporary files. */
  readonly diskBytes?: number | undefined;
  /** Of one process. */
  readonly openFiles?: number | undefined;
};

/**
 * `group`: workloads of one group have one sidecar process, as those of one tenant. `services`: only where the isolation gives each
 * workload a loopback of its own (`Workloads.hasOwnNetwork`).
 */
export type WorkloadNetwork =
  | 'none'
  | {
      readonly group: string;
      readonly policy: PolicyDocument;
      readonly services?: readonly WorkloadService[];
    };

/** What this process serves at a port of the loopback of one workload, which nobody else reaches: who connects is known by that. */
export type WorkloadService = {
  readonly port: number;
  /** `handle`: a socket that listens, for `Server.listen`. It belongs to the service from then on. */
  listen(handle: object): Promise<OpenService>;
};

/** `close` ends its connections, too. */
export type OpenService = { close(): Promise<void> };

/** What the sidecar refused a workload. No field contains a header value, a body or a query. */
export type WorkloadRefusal = {
  /** Host and port, as far as the request named them. */
  readonly authority?: string | undefined;
  readonly method?: string | undefined;
  /** Of `docs/errors.md`. */
  readonly reason: string;
  readonly cause?: string | undefined;
  readonly status?: number | undefined;
};

export type WorkloadStream = 'stdout' | 'stderr';

export type WorkloadSpec = {
  /** 1 to 64 of a to z, 0 to 9 and `-`; never used again. */
  readonly id: string;
  /** Without a shell. The first is a path or a name that `PATH` of `env` finds. Every user of the machine can read it. */
  readonly command: readonly string[];
  readonly cwd: string;
  /** Over defaults (`PATH`, `HOME`, `TMPDIR`, `LANG`) and under the variables of the proxy. Nothing of this process is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** What the program reads from descriptor 3 until its end: the place for secrets. Absent: the descriptor is empty. */
  readonly input?: Uint8Array | string | undefined;
  /** Besides /usr, a small /etc, /proc, /dev and a /tmp of its own. */
  readonly mounts: readonly WorkloadMount[];
  readonly limits: WorkloadLimits;
  readonly network: WorkloadNetwork;
  /** It is ended after this time. */
  readonly timeoutMs?: number | undefined;
  /** Of `Workloads.userOf`; absent: a user of this workload alone, where it gets one. */
  readonly user?: WorkloadUser | undefined;
  /** At most 16 KiB of a line, whose rest is dropped then. A program that prints faster than is read waits. */
  onLine(stream: WorkloadStream, line: string, isTruncated: boolean): void;
  readonly onRefusal?: (refusal: WorkloadRefusal) => void;
};

export type WorkloadEndReason = 'memory' | 'disk' | 'processes' | 'timeout' | 'stopped';

export type WorkloadEnd = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it was ended, or what ended it; undefined: it ended by itself. */
  readonly reason?: WorkloadEndReason | undefined;
};

/** What holds for a workload on this machine. */
export type WorkloadHold = {
  readonly isolation: WorkloadIsolation;
  /** Sentences for the log of its owner: each limit that is not held or held in a weaker way, and what the network is. */
  readonly notes: readonly string[];
};

export type Workload = {
  readonly id: string;
  /** Of the process that contains it, on the machine. */
  readonly pid: number;
  readonly held: WorkloadHold;
  /** Never rejects. Nothing of it runs then, all of its lines have been reported, and its temporary files are gone. */
  readonly ended: Promise<WorkloadEnd>;
  /** SIGTERM to the program, and after the grace SIGKILL to all that it started. Resolves with `ended`. */
  stop(graceMs: number): Promise<WorkloadEnd>;
  /** An older policy than the one in effect changes nothing. Rejects with a BoxError, and the policy before stays. */
  applyPolicy(policy: PolicyDocument): Promise<void>;
  /** Bytes of memory that it uses now; undefined where nobody counts them. */
  memoryBytes(): Promise<number | undefined>;
};

export type WorkloadsCapabilities = WorkloadHold & {
  /** The version of bwrap. */
  readonly version: string | undefined;
};

export type Workloads = {
  readonly isolation: WorkloadIsolation;
  /** Targets of mounts may differ from their sources. */
  readonly hasOwnFiles: boolean;
  /** Each workload has a network namespace, and services in it. */
  readonly hasOwnNetwork: boolean;
  capabilities(): WorkloadsCapabilities;
  /**
   * The host user of an owner, for example of a deployment: the same until it is released, also after a restart. Undefined: without
   * root, all workloads run as the user of this process.
   */
  userOf(owner: string): Promise<WorkloadUser | undefined>;
  /** Those that have a host user now. */
  readonly owners: ReadonlySet<string>;
  /** No workload of the owner runs. Ends and removes what its user left, who may be given to another owner then. */
  releaseUser(owner: string): Promise<void>;
  /** Resolves when the program is about to begin. Rejects with an Error that says why not, and nothing of it is left. */
  start(spec: WorkloadSpec): Promise<Workload>;
  /** Ends and removes what a killed process left: done when they are opened, and harmless later. */
  cleanup(): Promise<void>;
  /** Ends all workloads and everything that runs for them. */
  close(): Promise<void>;
};

const REASONS: Readonly<Record<WorkloadEndReason, (limits: WorkloadLimits) => string>> = {
  memory: ({ memBytes }) => `it used more memory than ${sizeOf(memBytes)}`,
  disk: ({ diskBytes }) => `it wrote more files than ${sizeOf(diskBytes)}`,
  processes: ({ pids }) => `it started more than ${pids ?? 'the allowed number of'} processes`,
  timeout: () => 'it took longer than allowed',
  stopped: () => 'it was stopped',
};

/** For logs and for the reason of a state: `it ended with code 1`. */
export function describeEnd({ code, signal, reason }: WorkloadEnd, limits: WorkloadLimits): string {
  if (reason !== undefined) return REASONS[reason](limits);
  return signal === null ? `it ended with code ${code ?? 'unknown'}` : `it was ended by ${signal}`;
}

function sizeOf(bytes: number | undefined): string {
  return bytes === undefined ? 'is allowed' : `${Math.round(bytes / 1024 ** 2)} MiB`;
}

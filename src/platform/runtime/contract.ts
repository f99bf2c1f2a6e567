// The runtime of boxes: what starts, stops and lists them on this machine. The modules that own boxes say what should run and
// which policy applies; they know nothing of processes, namespaces and sidecars. At most ten functions.
import type { Duplex } from 'node:stream';
import type { Issue } from '../../base/schema.ts';
import type { RuntimeSnapshots } from './snapshot-contract.ts';
import type { Secret } from '../../base/secret.ts';

export type RuntimeKind = 'bubblewrap' | 'attached';

export type BoxSpec = {
  /** A UUID; never used again, so that nothing of a removed box becomes part of another one. */
  readonly id: string;
  readonly workspaceId: string;
  readonly organizationId: string;
  /** For logs alone. */
  readonly name: string;
  /** Undefined: the snapshot `base`. */
  readonly snapshotId: string | undefined;
  /** What has run it before: another one rejects with `failed`. Undefined: it never ran. */
  readonly runtime: RuntimeKind | undefined;
  /** Of the box itself; the variables of the rules are in the document of its policy. */
  readonly envVars: Readonly<Record<string, string>>;
  readonly limits: BoxLimits;
  /** What clients of the proxy send where other machines can reach its listener; unused where they cannot. */
  readonly proxyToken: Secret;
};

export type BoxLimits = {
  readonly cpuMillicores?: number;
  readonly memBytes?: number;
  readonly fsCapacityBytes?: number;
  readonly pids?: number;
};

/** Everything that a sidecar must know of a box. It takes effect as a whole, or not at all. */
export type BoxPolicy = {
  /** The platform's; it rises with each change, of the document or of a secret, and is at least 1. */
  readonly version: number;
  /** A whole proxy_config with its opaque values: it is never logged and never part of an error. */
  readonly document: object;
  /** The values of the workspace secrets that the document names. */
  readonly secrets: ReadonlyMap<string, Secret>;
};

export type StartedBox = {
  /** What runs it from now on. */
  readonly runtime: RuntimeKind;
  /** Where clients of an attached box find the proxy, without a token: `http://127.0.0.1:41234`. */
  readonly proxyUrl?: string;
  /** Clients must send the token of the box as the password of the proxy. */
  readonly needsProxyToken?: boolean;
  /** Of the authority that signs the leaf certificates. */
  readonly caPem?: string;
  /** What this machine cannot hold for the box, and why it is not isolated where it might be, for its users. */
  readonly statusMessage?: string;
  /** Of the policy that is in effect now; never lower than the given one. */
  readonly appliedVersion: number;
};

export type BoxReport = {
  readonly id: string;
  /** `running`: its listener is open with a policy. `failed`: it ended by itself, or its sidecar cannot serve it. */
  readonly state: 'running' | 'stopped' | 'failed';
  /** Of a failure, for the users of the box: the last lines of its log, without a secret. */
  readonly reason?: string;
  /** 0: no policy is in effect, for example because the sidecar started again. No client is served then. */
  readonly appliedVersion: number;
};

/** What this machine holds, and why it does not hold the rest. */
export type Capabilities = {
  /** Of the program that isolates boxes. */
  readonly version: string | undefined;
  readonly isolation: Capability;
  /** Of processor, memory and processes. */
  readonly limits: Capability;
  /** Of `fsCapacityBytes`. */
  readonly storage: Capability;
  /** The agent in the box: commands, files. */
  readonly agent: Capability;
};
export type Capability =
  /** `note`: in which way. */
  { readonly isHeld: true; readonly note?: string } | { readonly isHeld: false; readonly reason: string };

export type Runtime = {
  /** When it was opened. */
  readonly kind: RuntimeKind;
  /** Of the machine: what boxes can be made of. Its functions reject with `not_supported` where boxes have no files. */
  readonly snapshots: RuntimeSnapshots;
  capabilities(): Promise<Capabilities>;
  /**
   * Idempotent: a box that runs goes on, with this policy, these limits and this token. Resolves when its listener is open.
   * An attempt that rejects leaves nothing that serves a client.
   */
  start(box: BoxSpec, policy: BoxPolicy): Promise<StartedBox>;
  /** Of a running box; rejects with `failed` for one that does not run. A lower version than the applied one changes nothing. */
  applyPolicy(id: string, policy: BoxPolicy): Promise<Pick<StartedBox, 'appliedVersion' | 'statusMessage'>>;
  /** Ends its processes and closes its listener; keeps its files. Resolves for a box that does not run, or is not known. */
  stop(id: string): Promise<void>;
  /** Resolves when nothing of it is left; also for a box that is not known. */
  remove(id: string): Promise<void>;
  /** All boxes of this machine, those that nobody asked for included. */
  list(): Promise<readonly BoxReport[]>;
  /** Yields after something changed (a box ended, a sidecar lost its policies); the caller then calls `list`. Ends with the signal. */
  changes(signal: AbortSignal): AsyncIterable<void>;
  /**
   * A connection into a running box: to its data plane, which is an HTTP server, or to a port of its loopback address. Rejects with
   * `not_supported` for an attached box. A connection that breaks does not look as if it had ended.
   */
  connect(id: string, to: BoxPlace): Promise<Duplex>;
  /** Batches of records of exchanges. One is acknowledged when `onBatch` resolves, otherwise it is offered again. Ends with the signal. */
  readRecords(onBatch: (batch: BoxRecords) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** Of this client alone: boxes go on. */
  close(): Promise<void>;
};

export type BoxPlace = 'data-plane' | { readonly port: number };

export type BoxRecords = {
  readonly boxId: string;
  /** A UUID of the sidecar process: source and number identify a record. */
  readonly source: string;
  /** As the sidecar wrote them: checked before they are stored. */
  readonly records: readonly object[];
};

export type RuntimeErrorKind =
  /** The sidecar rejects the document: the same document is rejected again. */
  | 'invalid_policy'
  /** The directory or the archive cannot become a snapshot. */
  | 'invalid_snapshot'
  /** This machine has not enough left for the box. */
  | 'no_capacity'
  | 'not_supported'
  /** The runtime does not respond: the same call may succeed later, and may have had its effect. */
  | 'unavailable'
  /** The box itself could not be started, or does not run. */
  | 'failed'
  /** No client may connect to this port, which is that of the proxy. */
  | 'port_refused'
  /** Nothing in the box listens on the port. */
  | 'not_listening'
  /** What connects to the box ended, or does not respond: the same call may succeed later. */
  | 'agent_lost';

/** Its message is shown to the users of the box: it contains no secret and no path of the machine. */
export class RuntimeError extends Error {
  override readonly name: string = 'RuntimeError';
  readonly kind: RuntimeErrorKind;
  /** Of an invalid policy, relative to the document. */
  readonly issues: readonly Issue[];

  constructor(kind: RuntimeErrorKind, message: string, issues: readonly Issue[] = []) {
    super(message);
    this.kind = kind;
    this.issues = issues;
  }
}

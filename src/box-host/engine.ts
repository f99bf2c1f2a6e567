// What isolates a box and runs its programs. A kind of box is one engine: `attached` isolates nothing; one that isolates gives
// the listener of the box a network namespace.
import type { Duplex } from 'node:stream';
import type { BoxDocument } from './box-document.ts';
import type { NamespaceListener } from './listeners/namespace-listener.ts';
import type { SnapshotStore } from './snapshots/snapshot-store.ts';

export type Capability = { readonly is_held: boolean; readonly reason?: string };
export type Capabilities = Readonly<Record<'isolation' | 'limits' | 'storage' | 'agent', Capability>>;

/** Where the sidecar serves the box: an address of this machine, or a socket in the namespace of the box. */
export type BoxListen =
  | { readonly host: string; readonly port: number; readonly needsToken: boolean }
  | NamespaceListener;

/** A box that is ready for its sidecar. */
export type OpenBox = {
  readonly listen: BoxListen;
  /** What this machine does not hold for the box. */
  readonly statusMessage?: string | undefined;
  /** Resolves with a reason for the users of the box when it ends by itself; never without that. */
  readonly ended: Promise<string>;
  /** Undefined: nothing of ours runs in the box. `placeholders`: `env_vars` of its rules. */
  readonly openAgent: ((placeholders: Readonly<Record<string, string>>) => Promise<Duplex>) | undefined;
  /**
   * What the box is started with while it runs: limits are in effect at once, variables and certificates with its next agent.
   * Undefined: nothing of it concerns the engine.
   */
  readonly update?: ((box: BoxDocument, surroundings: Surroundings) => Promise<void>) | undefined;
  /** Ends its programs and closes its namespaces; keeps its files. */
  close(): Promise<void>;
};

export type Surroundings = {
  /** Of its listener when it ran before; undefined the first time, or for a box that has no port of this machine. */
  readonly port: number | undefined;
  /** All certificates that the box should trust: that of the box, and the roots of the system. */
  caBundle(): Promise<string>;
};

export type BoxEngine = {
  readonly kind: 'attached' | 'bubblewrap';
  /** Of the program that isolates. */
  readonly version: string | undefined;
  capabilities(): Promise<Capabilities>;
  /** Undefined: this machine has no files of boxes. */
  readonly snapshots: SnapshotStore | undefined;
  open(box: BoxDocument, surroundings: Surroundings): Promise<OpenBox>;
  /** The box is closed; removes its files. Also for a box that never ran. */
  remove(id: string): Promise<void>;
  close(): Promise<void>;
};

// A row of the stage `leak`: an action, after which every sink is searched for every secret. Three
// kinds: bytes sent to a running sidecar, a start, and damage to sealed state.
import type { AttackRow } from '../row.ts';

/** A pair is a piece and how often it comes. */
export type Bytes = readonly (string | readonly [piece: string, count: number])[];

export type TrafficScript = {
  /** `tunnel` is inside an intercepted tunnel to `api.test`. */
  readonly entry: 'proxy' | 'tunnel' | 'admin';
  /**
   * As latin1, each on a connection of its own. `<OPAQUE>` and `<SECRET>` are the values in force, `<MARK>` a secret of
   * the client's own, `<TOKEN>` the admin token, `<API>` the authority of the rule's host, `<CLEAR>` that of another.
   */
  readonly send: readonly Bytes[];
};
export type TrafficExpectation = {
  /** Of the last response on each connection. */
  readonly statuses: readonly number[];
  /** Of the last record that these connections left. */
  readonly record?: Readonly<Record<string, unknown>>;
  /** The response of the admin API, where it matters. */
  readonly holds?: string;
};
export type TrafficRow = AttackRow<TrafficScript, TrafficExpectation>;

export type StartScript = {
  /** Over an environment in which it starts; `<STATE>` is the state directory, `<SECRET>` and others are values. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another mask for the modes of new files than the shell's. */
  readonly umask?: string;
  /** What is done to a file of an earlier start; without it the directory is empty. */
  readonly beforehand?: { readonly file: string; readonly mode?: number; readonly text?: string };
  /** Sent once it is ready. */
  readonly signal?: 'SIGUSR1' | 'SIGHUP';
};
export type StartExpectation = {
  /** Exit code 2 and a message that holds this; or it starts. */
  readonly refused?: string;
  /** Modes of files below the state directory, once it runs. */
  readonly modes?: Readonly<Record<string, string>>;
  /** A warning that holds this. */
  readonly warns?: string;
};
export type StartRow = AttackRow<StartScript, StartExpectation>;

/** What is done to the folder of two sealed files, `a` and `b`. */
export type Damage =
  | { readonly act: 'flip' | 'cut' | 'append'; readonly file: string; readonly at: number }
  | { readonly act: 'copy' | 'swap' | 'join'; readonly file: string; readonly other: string }
  | { readonly act: 'write'; readonly file: string; readonly hex: string }
  | { readonly act: 'rollback'; readonly file: string }
  | { readonly act: 'key'; readonly hex: string };
export type StateScript = { readonly damage: readonly Damage[] };
export type StateExpectation = {
  /** What stops the start; or what it reads. */
  readonly refused?: string;
  readonly reads?: Readonly<Record<string, string>>;
};
export type StateRow = AttackRow<StateScript, StateExpectation>;

export function toText(bytes: Bytes): string {
  return bytes.map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1]))).join('');
}

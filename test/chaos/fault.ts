// The shape of a fault: a name, what clients must observe, and how it begins and ends.
import type { ChaosScene, SceneSettings } from './chaos-scene.ts';

/** What the machine must provide: private namespaces (Linux, `unshare`) or libfaketime. */
export type Need = 'namespaces' | 'faketime';

/** A fault for a started scene; the host of `authority` responds before and after it. */
export type Arranged = {
  readonly authority: string;
  /** Another host that responds only after the fault has ended; `authority` if absent. */
  readonly recovered?: string;
  /** Begins the fault and returns what was observed, in the form of `expects`. */
  inject(): Promise<string>;
  remove(): Promise<void> | void;
  /** Releases what the row itself opened. */
  close?(): Promise<void> | void;
};

type Described = {
  readonly name: string;
  /** The observed codes in order, in the form of `codeOf`. */
  readonly expects: string;
  readonly needs?: readonly Need[];
  readonly settings?: SceneSettings;
  /** True for a fault that was added to the catalogue's list. */
  readonly isAdded?: boolean;
  /** The codes other than 200 that a bystander may get; none if absent. */
  readonly bystanderMaySee?: readonly string[];
};

/** A fault that the process survives. */
export type Fault = Described & { arrange(scene: ChaosScene): Promise<Arranged> };

/** A fault that ends a process or its start: returns what was observed and how soon the next process served requests. */
export type Ending = Described & {
  end(scene: ChaosScene): Promise<{ readonly seen: string; readonly recoveryMs: number }>;
};

export type ChaosRow = Fault | Ending;

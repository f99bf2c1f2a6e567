// What a fault is: a name, what clients are to see of it, and how it begins and ends. It knows no scene's inside.
import type { ChaosScene, SceneSettings } from './chaos-scene.ts';

/** What the machine must offer: namespaces of one's own (Linux, `unshare`), or libfaketime. */
export type Need = 'namespaces' | 'faketime';

/** A fault of a scene that is up; the host of `authority` answers before it and after it. */
export type Arranged = {
  readonly authority: string;
  /** Another that answers only once the fault has ended; `authority` if not given. */
  readonly recovered?: string;
  /** Begins the fault and answers what was seen of it, as `expects` has it. */
  strike(): Promise<string>;
  heal(): Promise<void> | void;
  /** Lets go of what the row itself opened. */
  close?(): Promise<void> | void;
};

type Described = {
  readonly name: string;
  /** The codes in their order, by `codeOf`. */
  readonly expects: string;
  readonly needs?: readonly Need[];
  readonly settings?: SceneSettings;
  /** Whether it is one of the catalogue's list, or one that was added to it. */
  readonly isAdded?: boolean;
  /** What a bystander may be answered beside its 200; nothing, if not given. */
  readonly bystanderMaySee?: readonly string[];
};

/** One that the process outlives. */
export type Fault = Described & { arrange(scene: ChaosScene): Promise<Arranged> };

/** One that is the end of a process, or of its start: it answers what was seen and how soon the next one served. */
export type Ending = Described & {
  end(scene: ChaosScene): Promise<{ readonly seen: string; readonly recoveryMs: number }>;
};

export type ChaosRow = Fault | Ending;

// Whose response is built next. To build the page of a long list takes longer than most requests take in all: while several
// organizations ask, it is built in slices, one in a turn of the event loop, in which the requests of others go on. The
// organizations take turns, and a slice waits for those requests of others that have just begun: most of them end soon.
import { finish, type Steps } from '../../../base/steps.ts';
import type { Clock } from './clock.ts';
import type { RecentOrganizations } from './recent-organizations.ts';

/** Takes one step; returns whether it was the last one. */
type Build = () => boolean;
type Requests = { running: number; beganMs: number };

/** A request that takes longer than this hardly notices a slice; and no slice waits longer. */
export const YOUNG_MS = 2;

export class ResponseTurns {
  readonly #clock: Clock;
  readonly #recent: RecentOrganizations;
  /** By organization: whose turn is next comes first. */
  readonly #builds = new Map<string, Build[]>();
  readonly #requests = new Map<string, Requests>();
  #isTurnSet = false;
  /** While a slice waits for requests of others. */
  #endWait: (() => void) | undefined;
  /** When it waits no longer. */
  #lateAtMs: number | undefined;

  constructor(clock: Clock, recent: RecentOrganizations) {
    this.#clock = clock;
    this.#recent = recent;
  }

  /** Runs a request of the organization, up to the building of its response. */
  async during<T>(organization: string, work: () => Promise<T>): Promise<T> {
    const requests = this.#requests.get(organization) ?? { running: 0, beganMs: 0 };
    this.#requests.set(organization, requests);
    requests.running += 1;
    requests.beganMs = this.#clock.now();
    try {
      return await work();
    } finally {
      requests.running -= 1;
      if (requests.running === 0) this.#requests.delete(organization);
      this.#endWait?.();
    }
  }

  /** Runs the steps; all at once where no other organization is active. */
  async build<T>(organization: string, steps: Steps<T>): Promise<T> {
    if (!this.#recent.hasOtherThan(organization)) return finish(steps);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const builds = this.#builds.get(organization) ?? [];
    this.#builds.set(organization, builds);
    builds.push(() => {
      try {
        const { done, value } = steps.next();
        if (done === true) resolve(value);
        return done === true;
      } catch (error) {
        reject(error);
        return true;
      }
    });
    this.#setTurn();
    return promise;
  }

  #setTurn(): void {
    if (this.#isTurnSet || this.#endWait !== undefined || this.#builds.size === 0) return;
    this.#isTurnSet = true;
    setImmediate(() => {
      this.#isTurnSet = false;
      this.#take();
    });
  }

  #take(): void {
    const [next] = this.#builds;
    if (next === undefined) return;
    const [organization, builds] = next;
    const nowMs = this.#clock.now();
    this.#lateAtMs ??= nowMs + YOUNG_MS;
    if (nowMs < this.#lateAtMs && this.#hasYoungRequests(organization, nowMs))
      return this.#wait(this.#lateAtMs - nowMs);
    this.#lateAtMs = undefined;
    this.#builds.delete(organization);
    const [build] = builds;
    if (build?.() === true) builds.shift();
    if (builds.length > 0) this.#builds.set(organization, builds);
    this.#setTurn();
  }

  #wait(ms: number): void {
    const cancel = this.#clock.after(ms, () => this.#endWait?.());
    this.#endWait = () => {
      cancel();
      this.#endWait = undefined;
      this.#setTurn();
    };
  }

  /** Of others. */
  #hasYoungRequests(organization: string, nowMs: number): boolean {
    for (const [other, { beganMs }] of this.#requests)
      if (other !== organization && nowMs - beganMs < YOUNG_MS) return true;
    return false;
  }
}

// What is in flight of one instance, and who waits for its end. Pure but for the order in which instances were chosen.

export class InstanceLoad {
  /** Requests go to it. */
  isServing = false;
  #requests = 0;
  /** Chosen, and not yet connected to it. */
  #onTheirWay = 0;
  #chosen = 0;
  #refusedMs = Number.NEGATIVE_INFINITY;
  readonly #leaving = new Set<() => void>();
  readonly #onSent: (() => void)[] = [];
  readonly #onEmpty: (() => void)[] = [];

  get requests(): number {
    return this.#requests;
  }

  get upgraded(): number {
    return this.#leaving.size;
  }

  get isUnused(): boolean {
    return !this.isServing && this.#requests === 0;
  }

  /** Of several: the one that has connected lately, then the one with the least in flight, then the one that waited longest. */
  isBefore(other: InstanceLoad, nowMs: number): boolean {
    const [refuses, otherRefuses] = [this.#refuses(nowMs), other.#refuses(nowMs)];
    if (refuses !== otherRefuses) return otherRefuses;
    if (this.#requests !== other.#requests) return this.#requests < other.#requests;
    return this.#chosen < other.#chosen;
  }

  begin(onLeave: (() => void) | undefined): void {
    this.#requests += 1;
    this.#onTheirWay += 1;
    this.#chosen = choices += 1;
    if (onLeave !== undefined) this.#leaving.add(onLeave);
  }

  sent(): void {
    this.#onTheirWay -= 1;
    if (this.#onTheirWay === 0) for (const done of this.#onSent.splice(0)) done();
  }

  refused(nowMs: number): void {
    this.#refusedMs = nowMs;
  }

  end(onLeave: (() => void) | undefined): void {
    this.#requests -= 1;
    if (onLeave !== undefined) this.#leaving.delete(onLeave);
    if (this.#requests === 0) for (const done of this.#onEmpty.splice(0)) done();
  }

  leave(): void {
    for (const onLeave of this.#leaving) onLeave();
  }

  async whenSent(): Promise<void> {
    if (this.#onTheirWay > 0) await new Promise<void>((resolve) => this.#onSent.push(resolve));
  }

  async whenEmpty(signal: AbortSignal | undefined): Promise<void> {
    if (this.#requests === 0 || signal?.aborted === true) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onEmpty.push(resolve);
    signal?.addEventListener('abort', () => resolve(), { once: true });
    await promise;
  }

  #refuses(nowMs: number): boolean {
    return nowMs - this.#refusedMs < REFUSED_MS;
  }
}

/** The runner notices within seconds that a process has ended. */
const REFUSED_MS = 1_000;
let choices = 0;

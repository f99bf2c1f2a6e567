// How long the frames of all workers may be worked on in one turn of the event loop: requests must not wait behind a graph that
// sends as fast as it can.

export class TurnBudget {
  readonly #turnMs: number;
  #usedMs = 0;
  /** Of this turn: they go on in the next one. */
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /** False: nothing more is to be done in this turn, and `resume` is called in the next one. */
  spend(ms: number, resume: () => void): boolean {
    this.#usedMs += ms;
    this.#schedule();
    if (this.#usedMs < this.#turnMs) return true;
    this.#waiting.push(resume);
    return false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#usedMs = 0;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resume of waiting) resume();
    });
  }
}

// How many client connections the process holds, over all of its listeners. A client that has not said yet who it is
// holds its place on sufferance: where places are short the one that has waited longest gives its own up, so that
// strangers cannot keep out the clients of a sandbox, nor take the descriptors that a change of the rules needs.
export type Waiting = {
  /** Tells it that there is no place. It may stay a moment to hear that. */
  turnAway(): void;
  /** Ends it now. */
  cut(): void;
};

export type ConnectionBudget = {
  /** Takes a connection in; it waits until it is `known`. */
  add(one: Waiting): void;
  /** Takes in one that was turned away for a reason of its own. */
  addLeaving(one: Waiting): void;
  /** It has named its sandbox, whose own limit counts it from here on. */
  known(one: Waiting): void;
  gone(one: Waiting): void;
  readonly open: number;
};

/** `maxOpen` connections in all, of which `maxWaiting` have not named their sandbox; and one that is told so. */
export function createConnectionBudget(limits: {
  readonly maxOpen: number;
  readonly maxWaiting: number;
}): ConnectionBudget {
  const open = new Set<Waiting>();
  // Both in the order of arrival.
  const waiting = new Set<Waiting>();
  const leaving = new Set<Waiting>();

  function gone(one: Waiting): void {
    open.delete(one);
    waiting.delete(one);
    leaving.delete(one);
  }

  function isOver(): boolean {
    return waiting.size + leaving.size > limits.maxWaiting || open.size > limits.maxOpen;
  }

  /** Who was told lately holds its place until it is needed: else each newcomer would find one leaver, and stay. */
  function makeSpace(): void {
    for (const one of leaving) {
      if (!isOver()) return;
      gone(one);
      one.cut();
    }
    const [oldest] = waiting;
    if (!oldest || !isOver()) return;
    waiting.delete(oldest);
    leaving.add(oldest);
    oldest.turnAway();
  }

  return {
    add(one) {
      open.add(one);
      waiting.add(one);
      makeSpace();
    },
    addLeaving(one) {
      makeSpace();
      open.add(one);
      leaving.add(one);
    },
    known(one) {
      waiting.delete(one);
    },
    gone,
    get open() {
      return open.size;
    },
  };
}

// How many client connections the process holds, over all of its listeners. A client that has not said yet who it is
// holds its place on sufferance: where places are short the one that has waited longest gives its own up, so that
// strangers cannot keep out the clients of a sandbox, nor take the descriptors that a change of the rules needs.
export type Waiting = {
  /** Ends it; it hears why. */
  yield(): void;
};

export type ConnectionBudget = {
  /** Takes a connection in; it waits until it is `known`. */
  add(one: Waiting): void;
  /** It has named its sandbox, whose own limit counts it from here on. */
  known(one: Waiting): void;
  gone(one: Waiting): void;
  readonly open: number;
};

/** `maxOpen` connections in all, of which `maxWaiting` have not named their sandbox. */
export function createConnectionBudget(limits: {
  readonly maxOpen: number;
  readonly maxWaiting: number;
}): ConnectionBudget {
  const open = new Set<Waiting>();
  // In the order of arrival.
  const waiting = new Set<Waiting>();
  return {
    add(one) {
      open.add(one);
      waiting.add(one);
      if (waiting.size <= limits.maxWaiting && open.size <= limits.maxOpen) return;
      const [oldest] = waiting;
      oldest?.yield();
    },
    known(one) {
      waiting.delete(one);
    },
    gone(one) {
      open.delete(one);
      waiting.delete(one);
    },
    get open() {
      return open.size;
    },
  };
}

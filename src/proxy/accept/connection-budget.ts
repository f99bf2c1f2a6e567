// How many client connections the process has open, over all of its listeners. Unauthenticated connections are evicted
// oldest-first at the limit, so that foreign clients can neither keep out the clients of a sandbox nor use up the file
// descriptors that a change of the rules needs.
export type CountedConnection = {
  /** Sends a refusal; the connection may stay open for a moment, so that the client can read it. */
  reject(): void;
  /** Closes it now. */
  cut(): void;
};

export type ConnectionBudget = {
  /** Adds a connection; it is unauthenticated until `markAuthenticated`. */
  add(connection: CountedConnection): void;
  /** Adds one that its listener rejects for another reason. */
  addRejected(connection: CountedConnection): void;
  /** Its client has selected a sandbox, whose own limit counts it from here on. */
  markAuthenticated(connection: CountedConnection): void;
  remove(connection: CountedConnection): void;
  readonly open: number;
};

/** `maxOpen` connections in all, of which `maxWaiting` are unauthenticated, and one more that is being rejected. */
export function createConnectionBudget(limits: {
  readonly maxOpen: number;
  readonly maxWaiting: number;
}): ConnectionBudget {
  const open = new Set<CountedConnection>();
  // Both in the order of arrival.
  const unauthenticated = new Set<CountedConnection>();
  const rejected = new Set<CountedConnection>();

  function remove(connection: CountedConnection): void {
    open.delete(connection);
    unauthenticated.delete(connection);
    rejected.delete(connection);
  }

  function isOver(): boolean {
    return unauthenticated.size + rejected.size > limits.maxWaiting || open.size > limits.maxOpen;
  }

  /**
   * Rejected connections count until they are closed. If they did not, each new connection would evict one that is only
   * rejected and stays open, and the number of open ones would have no limit.
   */
  function evict(): void {
    for (const connection of rejected) {
      if (!isOver()) return;
      remove(connection);
      connection.cut();
    }
    const [oldest] = unauthenticated;
    if (!oldest || !isOver()) return;
    unauthenticated.delete(oldest);
    rejected.add(oldest);
    oldest.reject();
  }

  return {
    add(connection) {
      open.add(connection);
      unauthenticated.add(connection);
      evict();
    },
    addRejected(connection) {
      evict();
      open.add(connection);
      rejected.add(connection);
    },
    markAuthenticated(connection) {
      unauthenticated.delete(connection);
    },
    remove,
    get open() {
      return open.size;
    },
  };
}

// How many client connections the process has open, over all of its listeners. Unauthenticated connections are evicted
// oldest-first at the limit, so that foreign clients can neither keep out the clients of a sandbox nor use up the file
// descriptors that a change of the rules needs. The listener that has the most of them loses its own: a flood at one listener
// evicts no client of another.
export type CountedConnection = {
  /** The listener that accepted it. */
  readonly listener: object;
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
  /** How many the process may have. */
  readonly max: number;
  /** How many connections one sandbox may have now: those that are not authenticated give way. */
  readonly share: number;
};

/**
 * `maxOpen` connections in all, of which `maxWaiting` are unauthenticated, and one more that is being rejected. With
 * `isShared` a sandbox may have as many as are still free, so that whatever some sandboxes take, the next one gets half of
 * the rest (dynamic thresholds, Choudhury and Hahne 1998).
 */
export function createConnectionBudget(limits: {
  readonly maxOpen: number;
  readonly maxWaiting: number;
  readonly isShared?: boolean;
}): ConnectionBudget {
  const open = new Set<CountedConnection>();
  // In the order of arrival.
  const rejected = new Set<CountedConnection>();
  const unauthenticated = createListenerQueues();

  function remove(connection: CountedConnection): void {
    open.delete(connection);
    unauthenticated.remove(connection);
    rejected.delete(connection);
  }

  const isOver = (): boolean =>
    unauthenticated.size + rejected.size > limits.maxWaiting || open.size > limits.maxOpen;

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
    const oldest = isOver() ? unauthenticated.oldestOfLongest() : undefined;
    if (!oldest) return;
    unauthenticated.remove(oldest);
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
    markAuthenticated: (connection) => unauthenticated.remove(connection),
    remove,
    get open() {
      return open.size;
    },
    max: limits.maxOpen,
    get share() {
      const authenticated = open.size - unauthenticated.size - rejected.size;
      return limits.isShared ? limits.maxOpen - authenticated : Number.POSITIVE_INFINITY;
    },
  };
}

/** Connections by listener, those of each in the order of arrival. */
function createListenerQueues() {
  const queues = new WeakMap<object, Set<CountedConnection>>();
  const occupied = new Set<Set<CountedConnection>>();
  let size = 0;
  return {
    get size(): number {
      return size;
    },
    add(connection: CountedConnection): void {
      const queue = queues.get(connection.listener) ?? new Set();
      if (queue.size === 0) {
        queues.set(connection.listener, queue);
        occupied.add(queue);
      }
      queue.add(connection);
      size += 1;
    },
    remove(connection: CountedConnection): void {
      const queue = queues.get(connection.listener);
      if (!queue?.delete(connection)) return;
      size -= 1;
      if (queue.size === 0) occupied.delete(queue);
    },
    oldestOfLongest(): CountedConnection | undefined {
      let longest: Set<CountedConnection> | undefined;
      for (const queue of occupied) if (queue.size > (longest?.size ?? 0)) longest = queue;
      const [oldest] = longest ?? [];
      return oldest;
    },
  };
}

// When requests are due, and on which connection: in a closed loop (each connection sends the next request after a response)
// or at a constant rate. Latency counts from the time a request was due, sent or not, so that a stalled server is charged
// for every request that it delayed (coordinated omission). Opens no socket and reads no clock of its own.

export type Arrivals = {
  /** The due time of the next request, if it is due by now. */
  take(nowMs: number): number | undefined;
  /** True when no more requests will become due. */
  isFinished(nowMs: number): boolean;
};

/** A connection: one request at a time. */
export type Line = { exchange(onResponse: () => void): void };

export type Dispatch = {
  /** Sends the due requests while a connection is free. Call it whenever time has passed. */
  pump(): void;
};

/** Due at once, until `endMs`. */
export function createClosedLoop(endMs: number): Arrivals {
  return {
    take: (nowMs) => (nowMs < endMs ? nowMs : undefined),
    isFinished: (nowMs) => nowMs >= endMs,
  };
}

/** `count` requests, due at equal intervals from `startMs` on, independent of the ones before. */
export function createConstantRate(startMs: number, ratePerSecond: number, count: number): Arrivals {
  let taken = 0;
  return {
    take(nowMs) {
      const dueMs = startMs + (taken * 1000) / ratePerSecond;
      if (taken >= count || dueMs > nowMs) return undefined;
      taken += 1;
      return dueMs;
    },
    isFinished: () => taken >= count,
  };
}

/** Sends each request as soon as it is due and a connection is free. `latencies` and `delays` (due to sent) fill up. */
export function dispatch(options: {
  readonly lines: readonly Line[];
  readonly arrivals: Arrivals;
  readonly now: () => number;
  readonly latencies: number[];
  readonly delays: number[];
  readonly onFinished: () => void;
}): Dispatch {
  const { arrivals, now, latencies, delays, onFinished } = options;
  const free = [...options.lines];
  let inFlight = 0;

  function pump(): void {
    for (let line = free[0]; line !== undefined; line = free[0]) {
      const sentMs = now();
      const dueMs = arrivals.take(sentMs);
      if (dueMs === undefined) {
        if (inFlight === 0 && arrivals.isFinished(sentMs)) onFinished();
        return;
      }
      free.shift();
      inFlight += 1;
      delays.push(sentMs - dueMs);
      send(line, dueMs);
    }
  }

  function send(line: Line, dueMs: number): void {
    line.exchange(() => {
      latencies.push(now() - dueMs);
      inFlight -= 1;
      free.push(line);
      pump();
    });
  }

  return { pump };
}

// How much one server takes of what clients send, and how long it waits for it. Data alone.

export type ServerLimits = {
  readonly bodyBytes: number;
  readonly headBytes: number;
  readonly connections: number;
  /** For a whole request to arrive, and again for its answer to be taken. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** For what is under way when the process is told to end. */
  readonly drainMs: number;
};

export const defaultLimits: ServerLimits = {
  bodyBytes: 1024 * 1024,
  headBytes: 16 * 1024,
  connections: 1024,
  requestMs: 30_000,
  // Longer than proxies in front keep theirs mostly is not needed; shorter costs them a failed request.
  keepAliveMs: 75_000,
  drainMs: 30_000,
};

// How much a server accepts from its clients, and how long it waits for it. Data alone.

export type ServerLimits = {
  readonly bodyBytes: number;
  readonly headBytes: number;
  /** Besides those with a stream. */
  readonly connections: number;
  /** From one address (IPv6: a /64), until a key was accepted on it; proxies in front are not limited. */
  readonly connectionsPerAddress: number;
  /** Responses that are streams, or may become one. */
  readonly streams: number;
  /** For a whole request to arrive, and again for the client to read the response. */
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** For requests that run when the process begins to shut down. */
  readonly drainMs: number;
};

export const defaultLimits: ServerLimits = {
  bodyBytes: 1024 * 1024,
  headBytes: 16 * 1024,
  connections: 1024,
  connectionsPerAddress: 256,
  streams: 1024,
  requestMs: 30_000,
  // Longer than most proxies in front keep theirs: a shorter limit makes them send requests into a closed connection.
  keepAliveMs: 75_000,
  drainMs: 30_000,
};

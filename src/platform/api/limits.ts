// How much a server accepts from its clients, and how long it waits for it. Data alone.

/** What one organization may use of a process. A key of it may have half of what is counted, and a rate of its own. */
export type TenantLimits = {
  readonly keyRequestsPerS: number;
  readonly organizationRequestsPerS: number;
  /** Reads that run at once of an organization while others are active. Alone, it has its share of the connections. */
  readonly organizationContendedReads: number;
  /** Requests that wait for other systems, of all organizations and of one. */
  readonly preparing: number;
  readonly organizationPreparing: number;
  /** Streams, of all organizations and of one. */
  readonly streams: number;
  readonly organizationStreams: number;
  /** Bytes of request bodies that the process holds, of all organizations and of one. */
  readonly ingestBytes: number;
  readonly organizationIngestBytes: number;
  /** Bytes of responses that clients have not read yet, of all organizations and of one. */
  readonly responseBytes: number;
  readonly organizationResponseBytes: number;
};

export type ServerLimits = TenantLimits & {
  readonly bodyBytes: number;
  readonly headBytes: number;
  /** Besides those with a stream. */
  readonly connections: number;
  /** From one address (IPv6: a /64), until a key was accepted on it; proxies in front are not limited. */
  readonly connectionsPerAddress: number;
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
  organizationStreams: 256,
  // One process serves fewer requests a second: the limits end loops of a client, and say when it may go on.
  keyRequestsPerS: 2_000,
  organizationRequestsPerS: 4_000,
  // Two cores: the queries of two reads, and the process itself, made the requests of others take three times as long.
  organizationContendedReads: 1,
  preparing: 256,
  organizationPreparing: 64,
  ingestBytes: 256 * 1024 * 1024,
  organizationIngestBytes: 64 * 1024 * 1024,
  responseBytes: 256 * 1024 * 1024,
  organizationResponseBytes: 64 * 1024 * 1024,
  requestMs: 30_000,
  // Longer than most proxies in front keep theirs: a shorter limit makes them send requests into a closed connection.
  keepAliveMs: 75_000,
  drainMs: 30_000,
};

// After a 101 that answers an upgrade we sent: both connections leave HTTP and are joined byte for byte.
import type { ClientConnection } from './client-connection.ts';
import type { Timeouts } from './limits.ts';
import { type SpliceEnd, splice } from './splice.ts';
import type { UpstreamConnection } from './upstream.ts';

/** Joins the two; client bytes that came early leave only here, behind the 101 (RFC 9110 §7.8). */
export function continueUpgraded(options: {
  connection: ClientConnection;
  upstream: UpstreamConnection;
  fromUpstream: Buffer | undefined;
  timeouts: Timeouts;
}): Promise<SpliceEnd> {
  const { connection, upstream, fromUpstream, timeouts } = options;
  return splice({
    fromClient: connection.detach(),
    client: connection.socket,
    upstream: upstream.detach(),
    fromUpstream,
    idleMs: timeouts.tunnelIdleMs,
    halfClosedMs: timeouts.halfClosedMs,
  });
}

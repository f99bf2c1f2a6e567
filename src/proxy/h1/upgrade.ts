// After a 101 that answers an upgrade we sent: both connections leave HTTP and are joined byte for byte.
import type { ClientConnection } from './client-connection.ts';
import type { Timeouts } from '../limits.ts';
import type { ExchangeRecord } from '../record.ts';
import { splice } from '../splice.ts';
import type { UpstreamConnection } from '../upstream/connection-pool.ts';

/**
 * Joins the two until both are gone and notes what passed. Client bytes that came early leave only here, behind
 * the 101 (RFC 9110 §7.8); `rest` is what the host sent behind it.
 */
export async function joinUpgraded(options: {
  readonly connection: ClientConnection;
  readonly upstream: UpstreamConnection;
  readonly rest: Buffer | undefined;
  readonly timeouts: Timeouts;
  readonly record: ExchangeRecord;
}): Promise<void> {
  const { connection, upstream, rest, timeouts, record } = options;
  const end = await splice({
    fromClient: connection.detach(),
    client: connection.socket,
    upstream: upstream.detach(),
    fromUpstream: rest,
    idleMs: timeouts.tunnelIdleMs,
    halfClosedMs: timeouts.halfClosedMs,
  });
  record.bytes_up += end.bytesUp;
  record.bytes_down += end.bytesDown;
  if (end.reason !== 'closed') record.reason = end.reason;
}

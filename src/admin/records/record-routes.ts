// The route that streams the records of exchanges while they come.
import { adminError, type AdminResponse, invalid } from '../admin-errors.ts';
import type { AdminRequest } from '../route.ts';
import type { AdminTarget } from '../target.ts';
import { parseRecordFilter } from './record-filter.ts';
import { streamRecords } from './record-stream.ts';

/** Somebody who reads a page of a pager is no reader that is gone. */
const IDLE_MS = 600_000;
/** Its terminal may have stopped: the proxy does not wait for that. */
export const DRAINING_IDLE_MS = 1_000;

export function followRecords({ query, stream }: AdminRequest, { records }: AdminTarget): AdminResponse {
  const filter = parseRecordFilter(query, records.outcomes);
  if (!filter.ok) return invalid(filter.issues);
  const { readers, closed, draining } = stream;
  if (!readers.enter(closed)) return adminError('too_many_readers', { waitMs: 1000 });
  return {
    status: 200,
    fields: { 'Content-Type': 'application/x-ndjson' },
    body: streamRecords(records, filter.value, { left: stream.left(), draining }),
    idleMs: IDLE_MS,
    drainingIdleMs: DRAINING_IDLE_MS,
  };
}

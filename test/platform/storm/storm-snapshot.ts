// Reads the database of a storm, as the owner of its tables, after every process has ended.
import { type Client, type Connection, connectOnce } from '../../../src/platform/store/database.ts';
import type { Snapshot, StoredEvent } from './storm-checks.ts';

export async function takeSnapshot(owner: Connection): Promise<Snapshot> {
  return connectOnce(owner, async (client) => ({
    listeners: await rowsOf(client, 'select id, compute_id as "computeId", version from listeners'),
    keys: await rowsOf(client, 'select id, description from api_keys'),
    events: await readEvents(client),
    headSeq: await readHead(client),
    records: await rowsOf(
      client,
      'select source, count(*)::integer as count, max(number)::integer as last from sandbox_records group by source',
    ),
  }));
}

/** A storm has exactly one organization. */
async function readHead(client: Client): Promise<number> {
  const [row] = await rowsOf<{ readonly seq: number }>(client, 'select seq::integer from audit_heads');
  if (row === undefined) throw new Error('there is no audit log');
  return row.seq;
}

async function readEvents(client: Client): Promise<readonly StoredEvent[]> {
  const { rows } = await client.query<{ seq: number; operation: string; record: string }>(
    'select seq::integer, operation, record from audit_events order by seq',
  );
  return rows.map(({ seq, operation, record }) => {
    const { operation_succeeded: isSuccess, enrichments } = JSON.parse(record);
    return { seq, operation, isSuccess, resources: enrichments.resource_ids };
  });
}

async function rowsOf<T extends object>(client: Client, text: string): Promise<readonly T[]> {
  const { rows } = await client.query<T>(text);
  return rows;
}

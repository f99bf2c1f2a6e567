// Versions of credentials go when no run holds them: a run keeps the version that its first attempt took, through its retries and until
// what it has left in the bucket is removed.
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { hasLeftUpload } from './left-uploads.ts';

/** Of a destination: the versions before its present one that no run has that still needs one. */
export async function releaseCredentials(db: Database, destinationId: string): Promise<void> {
  await sql`
    delete from export_credentials c
    using export_destinations d
    where c.destination_id = ${destinationId} and d.id = c.destination_id and c.version < d.credentials_version
      and not exists (
        select from export_runs r
        where r.destination_id = c.destination_id and r.credentials_version = c.version
          and (r.status in ('CREATED', 'RUNNING') or ${hasLeftUpload('r')}))`.execute(db);
}

// Brings a database to the schema of this version. It must not know what the steps do.
import { createHash } from 'node:crypto';
import type { ClientConfig } from 'pg';
import { connectOnce } from './database.ts';
import type { Migration } from './migration.ts';
import { migrations } from './migrations.ts';

const RUNTIME = 'sallyport_app';
/** Any number that nobody else on the database takes. */
const LOCK = 5_271_009_001;

export async function migrate(
  ownerConnection: ClientConfig,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  await connectOnce(ownerConnection, async (client) => {
    await client.query(`select pg_advisory_lock(${LOCK})`);
    await client.query(
      `do $$ begin create role ${RUNTIME}; exception when duplicate_object or unique_violation then null; end $$`,
    );
    await client.query(
      'create table if not exists schema_migrations (id integer primary key, name text not null, hash text not null, applied_at timestamptz not null default now())',
    );
    for (const step of steps) {
      const { rowCount } = await client.query('select from schema_migrations where id = $1', [step.id]);
      if (rowCount !== 0) continue;
      await client.query('begin');
      await client.query(step.sql);
      await client.query('insert into schema_migrations (id, name, hash) values ($1, $2, $3)', [
        step.id,
        step.name,
        createHash('sha256').update(step.sql).digest('hex'),
      ]);
      await client.query('commit');
    }
    await client.query(`grant usage on schema public to ${RUNTIME}`);
  });
}

// The audit log: a chain of events for each organization.
import type { Migration } from '../migration.ts';

export const audit: Migration = {
  id: 2,
  name: 'audit',
  sql: `
    create table audit_events (
      organization_id uuid not null,
      seq bigint not null,
      id uuid not null constraint audit_events_id unique,
      time timestamptz(3) not null,
      operation text not null,
      workspace_id uuid,
      record text not null,
      previous_hash bytea not null,
      hash bytea not null,
      primary key (organization_id, seq)
    );
    create index on audit_events (organization_id, time, seq);
    create table audit_heads (
      organization_id uuid primary key,
      seq bigint not null,
      hash bytea not null,
      time timestamptz(3) not null,
      floor_seq bigint not null,
      floor_hash bytea not null
    );
  `,
};

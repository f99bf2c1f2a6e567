-- The data keys of workspaces, wrapped by a master key that is outside the database. They are deleted with their workspace, and
-- with them everything that was sealed for it. Of master keys the database knows the ids, so that a wrong file is refused at
-- the start and not with the first value that does not open.

create table vault_master_keys (
  id text primary key,
  created_at timestamptz not null default now(),
  -- No data key is wrapped with it any more, and none will be.
  retired_at timestamptz
);
create table vault_keys (
  workspace_id uuid primary key,
  organization_id uuid not null,
  master_key_id text not null references vault_master_keys,
  wrapped bytea not null,
  created_at timestamptz not null default now(),
  foreign key (organization_id, workspace_id) references workspaces (organization_id, id) on delete cascade
);
create index on vault_keys (master_key_id, workspace_id);
grant select, insert, update on vault_master_keys to sallyport_app;
grant select, insert, update, delete on vault_keys to sallyport_app;

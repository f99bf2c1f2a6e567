-- The secrets of workspaces, sealed by the vault. A version is never used twice, so that the bytes of an earlier value do not
-- open in the place of a later one, also after the secret was deleted and created again.

create sequence workspace_secret_versions;
create table workspace_secrets (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  key text not null,
  version bigint not null,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint workspace_secrets_key unique (workspace_id, key)
);
grant select, insert, update, delete on workspace_secrets to sallyport_app;
grant usage on workspace_secret_versions to sallyport_app;

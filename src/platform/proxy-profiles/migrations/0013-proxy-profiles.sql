-- Proxy profiles: documents with rules of the proxy that the sandboxes and deployments of a workspace share. The document is sealed by
-- the vault; `shown` is what callers may read of it. What uses a profile refers to it by a foreign key to (workspace_id, id).

create table proxy_profiles (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  name text not null,
  is_default boolean not null default false,
  version integer not null default 1,
  shown jsonb not null,
  sealed bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint proxy_profiles_name unique (workspace_id, name),
  constraint proxy_profiles_place unique (workspace_id, id)
);
create unique index proxy_profiles_default on proxy_profiles (workspace_id) where is_default;
grant select, insert, update, delete on proxy_profiles to sallyport_app;

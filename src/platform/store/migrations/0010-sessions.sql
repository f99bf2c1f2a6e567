-- Sessions of pages. Each stands for a key, and ends with it.

create table sessions (
  id uuid primary key default gen_random_uuid(),
  api_key_id uuid not null references api_keys on delete cascade,
  hash bytea not null constraint sessions_hash unique,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index on sessions (api_key_id, created_at);
create index on sessions (expires_at);
grant select, insert, update, delete on sessions to sallyport_app;

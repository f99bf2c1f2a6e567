-- The records of exchanges that sidecars send, by sandbox, and the tokens that authorize a sidecar to send them.

    create table sandbox_tokens (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      sandbox text not null,
      short_token text not null,
      hash bytea not null constraint sandbox_tokens_hash unique,
      created_at timestamptz not null default now(),
      expires_at timestamptz
    );
    create index on sandbox_tokens (workspace_id, sandbox);
    create table sandbox_records (
      workspace_id uuid not null references workspaces on delete cascade,
      sandbox text not null,
      source uuid not null,
      number bigint not null,
      time timestamptz(3) not null,
      received_at timestamptz not null default now(),
      record jsonb not null,
      primary key (workspace_id, sandbox, source, number)
    );
    create index on sandbox_records (workspace_id, sandbox, time, source, number);
    create index on sandbox_records (received_at);
    grant select, insert, update, delete on sandbox_tokens, sandbox_records to sallyport_app;
  
-- Tokens of services of boxes: for one port of one box, held by the key, and the session, that made them.

    create table box_service_tokens (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      box_id uuid not null references boxes on delete cascade,
      port integer not null check (port between 1 and 65535 and port <> 3128),
      hash bytea not null unique,
      code_hash bytea unique,
      cookie_hash bytea unique,
      api_key_id uuid not null references api_keys on delete cascade,
      session_id uuid references sessions on delete cascade,
      created_at timestamptz not null default now(),
      created_by uuid not null,
      expires_at timestamptz not null
    );
    create index on box_service_tokens (workspace_id);
    create index on box_service_tokens (box_id);
    create index on box_service_tokens (api_key_id);
    create index on box_service_tokens (session_id);
    create index on box_service_tokens (expires_at);
    grant select, insert, update, delete on box_service_tokens to sallyport_app;

-- Boxes of workspaces, every move between their states, and the machines that run them.

    create table box_machines (
      id uuid primary key,
      holder uuid,
      held_until timestamptz,
      seen_at timestamptz not null default now()
    );
    create table boxes (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      name text not null,
      has_generated_name boolean not null,
      status text not null check (status in ('provisioning', 'ready', 'failed', 'stopped', 'deleting')),
      status_message text,
      desired text not null check (desired in ('running', 'stopped')),
      desired_reason text not null,
      machine_id uuid,
      cpu_millicores integer,
      mem_bytes bigint,
      fs_capacity_bytes bigint,
      idle_ttl_seconds integer not null,
      delete_after_stop_seconds integer not null,
      labels jsonb not null,
      proxy_config jsonb,
      proxy_profile_id uuid,
      profile_version integer,
      policy_version integer not null default 1 check (policy_version >= 1),
      applied_version integer not null default 0 check (applied_version <= policy_version),
      sealed_policy bytea,
      sealed_env bytea,
      sealed_token bytea not null,
      token_version integer not null default 1,
      applied_token_version integer not null default 1,
      proxy_url text,
      needs_proxy_token boolean not null default false,
      ca_pem text,
      created_at timestamptz not null default now(),
      created_by uuid,
      updated_at timestamptz not null default now(),
      updated_by uuid,
      stopped_at timestamptz,
      active_at timestamptz not null default now(),
      constraint boxes_name unique (workspace_id, name),
      constraint boxes_proxy_profile_id_fkey foreign key (workspace_id, proxy_profile_id)
        references proxy_profiles (workspace_id, id)
    );
    create index on boxes (workspace_id, created_at, id);
    create index on boxes (machine_id);
    create index on boxes (workspace_id, proxy_profile_id);
    create table box_transitions (
      id bigint generated always as identity primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      box_id uuid not null,
      from_status text,
      to_status text,
      reason text not null,
      at timestamptz not null default now()
    );
    create index on box_transitions (box_id, id);
    create index on box_transitions (workspace_id);
    create index on box_transitions (at);
    grant select, insert, update, delete on boxes, box_transitions, box_machines to sallyport_app;
  

-- Deployments, their revisions with every move between the states, builds, sources, secrets, databases and logs, and the runners
-- that build and run them.

    alter table listeners add constraint listeners_place unique (workspace_id, id);

    create table runners (
      id uuid primary key,
      machine_id text not null,
      host text not null,
      pid integer not null,
      -- With {id}, {name} and {id8} in the places of those of a deployment.
      gateway_url text,
      isolation text,
      started_at timestamptz not null default now(),
      seen_at timestamptz not null default now()
    );
    create index on runners (machine_id);

    create table deployments (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      name text not null,
      display_name text,
      source text not null check (source in ('internal_source', 'external_docker', 'internal_docker')),
      source_config jsonb not null,
      source_revision_config jsonb not null,
      secret_references jsonb not null default '[]',
      status text not null default 'AWAITING_DATABASE'
        check (status in ('AWAITING_DATABASE', 'READY', 'AWAITING_DELETE')),
      status_reason text,
      image_version text,
      listener_id uuid,
      proxy_profile_id uuid,
      secrets_version integer not null default 0,
      latest_revision_id uuid,
      active_revision_id uuid,
      runner_id uuid references runners on delete set null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      constraint deployments_place unique (workspace_id, id),
      constraint deployments_listener_id_fkey foreign key (workspace_id, listener_id)
        references listeners (workspace_id, id),
      constraint deployments_proxy_profile_id_fkey foreign key (workspace_id, proxy_profile_id)
        references proxy_profiles (workspace_id, id)
    );
    -- One that is being deleted gives its name free.
    create unique index deployments_name on deployments (workspace_id, name) where status <> 'AWAITING_DELETE';
    create index on deployments (workspace_id, created_at, id);
    create index on deployments (workspace_id, listener_id);
    create index on deployments (workspace_id, proxy_profile_id);
    create index on deployments (runner_id);

    create table builds (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      deployment_id uuid not null references deployments on delete cascade,
      runner_id uuid references runners on delete set null,
      machine_id text not null,
      attempts integer not null default 1 check (attempts >= 0),
      source_path text not null,
      source_sha256 text,
      config_path text,
      directory text,
      size_bytes bigint,
      created_at timestamptz not null default now(),
      ready_at timestamptz,
      removed_at timestamptz
    );
    create index on builds (workspace_id, created_at);
    create index on builds (deployment_id, ready_at);
    create index on builds (runner_id);
    create index on builds (machine_id);

    create table revisions (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      deployment_id uuid not null references deployments on delete cascade,
      number integer not null check (number > 0),
      status text not null check (status in ('CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY',
        'DEPLOYING', 'CREATE_FAILED', 'BUILD_FAILED', 'DEPLOY_FAILED', 'DEPLOYED', 'SKIPPED', 'INTERRUPTED', 'UNKNOWN')),
      source text not null,
      source_config jsonb not null,
      source_revision_config jsonb not null,
      secrets_version integer not null,
      build_id uuid references builds on delete set null,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      constraint revisions_number unique (deployment_id, number)
    );
    create index on revisions (workspace_id);
    create index on revisions (build_id);
    create index revisions_pending on revisions (status, created_at)
      where status in ('CREATING', 'QUEUED', 'AWAITING_BUILD', 'BUILDING', 'AWAITING_DEPLOY', 'DEPLOYING', 'UNKNOWN');

    create table revision_moves (
      id bigint generated always as identity primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      revision_id uuid not null references revisions on delete cascade,
      from_status text,
      to_status text not null,
      -- `system`, or the id of the caller.
      actor text not null,
      reason text,
      at timestamptz not null default now()
    );
    create index on revision_moves (revision_id, id);
    create index on revision_moves (workspace_id);

    create table deployment_secrets (
      workspace_id uuid not null references workspaces on delete cascade,
      deployment_id uuid not null references deployments on delete cascade,
      -- Of the set: revisions that run keep the set that they were made with.
      version integer not null,
      name text not null,
      -- Of the value: a set that keeps it has the same bytes.
      sealed_version integer not null,
      sealed bytea not null,
      primary key (deployment_id, version, name)
    );
    create index on deployment_secrets (workspace_id);

    create table deployment_databases (
      deployment_id uuid primary key references deployments on delete cascade,
      workspace_id uuid not null references workspaces on delete cascade,
      database_name text not null unique,
      role_name text not null unique,
      sealed_password bytea not null,
      sealed_master_key bytea not null,
      created_at timestamptz not null default now()
    );
    create index on deployment_databases (workspace_id);

    create table deployment_uploads (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      deployment_id uuid not null references deployments on delete cascade,
      object_path text not null unique,
      -- Of the file, which has a name of its own for each attempt to send it.
      stored_path text unique,
      token_hash bytea not null,
      state text not null default 'open' check (state in ('open', 'stored', 'used')),
      -- Null where every machine can read it.
      machine_id text,
      size_bytes bigint,
      sha256 text,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    );
    create index on deployment_uploads (workspace_id);
    create index on deployment_uploads (deployment_id);
    create index on deployment_uploads (state, expires_at);

    create table deployment_logs (
      id bigint generated always as identity primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      deployment_id uuid not null references deployments on delete cascade,
      revision_id uuid references revisions on delete cascade,
      kind text not null check (kind in ('build', 'deploy')),
      instance text,
      at timestamptz not null,
      level text not null check (level in ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL')),
      message text not null
    );
    create index on deployment_logs (revision_id, kind, id);
    create index on deployment_logs (deployment_id, kind, id);
    create index on deployment_logs (workspace_id);
    create index on deployment_logs (at);

    -- What the lines of a deployment take, so that its oldest ones are removed before they fill the disk.
    create table deployment_log_sizes (
      deployment_id uuid primary key references deployments on delete cascade,
      workspace_id uuid not null references workspaces on delete cascade,
      bytes bigint not null
    );
    create index on deployment_log_sizes (workspace_id);
    create index on deployment_log_sizes (bytes);

    grant select, insert, update, delete on runners, deployments, builds, revisions, revision_moves, deployment_secrets,
      deployment_databases, deployment_uploads, deployment_logs, deployment_log_sizes to sallyport_app;

-- Organizations, workspaces, their members and API keys. Foreign keys tie personal tokens and workspace memberships to
-- the membership of the organization: when a user leaves the organization, they are deleted with it.

    create table organizations (
      id uuid primary key default gen_random_uuid(),
      display_name text not null,
      is_personal boolean not null default false,
      plan text not null,
      config jsonb not null default '{}',
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create table workspaces (
      id uuid primary key default gen_random_uuid(),
      organization_id uuid not null references organizations on delete cascade,
      display_name text not null,
      tenant_handle text constraint workspaces_handle unique,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      constraint workspaces_name unique (organization_id, display_name),
      unique (organization_id, id)
    );
    create table users (
      id uuid primary key default gen_random_uuid(),
      email text not null constraint users_email unique check (email = lower(email)),
      created_at timestamptz not null default now()
    );
    create table organization_members (
      id uuid primary key default gen_random_uuid(),
      organization_id uuid not null references organizations on delete cascade,
      user_id uuid not null references users on delete cascade,
      full_name text,
      role text not null,
      created_at timestamptz not null default now(),
      constraint organization_members_user unique (organization_id, user_id)
    );
    create table workspace_members (
      id uuid primary key default gen_random_uuid(),
      organization_id uuid not null,
      workspace_id uuid not null,
      user_id uuid not null,
      role text not null,
      created_at timestamptz not null default now(),
      constraint workspace_members_user unique (workspace_id, user_id),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id) on delete cascade,
      foreign key (organization_id, user_id)
        references organization_members (organization_id, user_id) on delete cascade
    );
    create table api_keys (
      id uuid primary key default gen_random_uuid(),
      kind text not null check (kind in ('service', 'personal')),
      organization_id uuid not null references organizations on delete cascade,
      workspace_id uuid,
      user_id uuid,
      role text,
      short_key text not null,
      hash bytea not null constraint api_keys_hash unique,
      description text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz,
      last_used_at timestamptz,
      check ((kind = 'personal') = (user_id is not null)),
      check ((kind = 'service') = (role is not null)),
      foreign key (organization_id, workspace_id) references workspaces (organization_id, id) on delete cascade,
      foreign key (organization_id, user_id)
        references organization_members (organization_id, user_id) on delete cascade
    );
    create index on organization_members (user_id);
    create index on workspace_members (organization_id, user_id);
    create index on api_keys (organization_id, user_id);
    create index on api_keys (workspace_id);
    grant select, insert, update, delete
      on organizations, workspaces, users, organization_members, workspace_members, api_keys
      to sallyport_app;
  
-- Destinations of bulk exports. Credentials are sealed, and have a row for each version that is in use.

    create table export_destinations (
      id uuid primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      display_name text not null,
      config text not null,
      credentials_keys text[] not null,
      credentials_version integer,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      unique (workspace_id, id)
    );
    create index on export_destinations (workspace_id, created_at desc);
    grant select, insert, update on export_destinations to sallyport_app;

    create table export_credentials (
      destination_id uuid not null,
      workspace_id uuid not null,
      version integer not null,
      sealed bytea not null,
      created_at timestamptz not null default now(),
      primary key (destination_id, version),
      foreign key (workspace_id, destination_id) references export_destinations (workspace_id, id) on delete cascade
    );
    create index on export_credentials (workspace_id, destination_id);
    grant select, insert, delete on export_credentials to sallyport_app;

-- Snapshots of workspaces: what boxes are made of. Their files are on one machine, which also runs their boxes.

    create table snapshots (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      name text not null,
      status text not null check (status in ('building', 'ready', 'failed')),
      status_message text,
      machine_id uuid,
      directory text,
      fs_capacity_bytes bigint,
      size_bytes bigint,
      entries integer,
      created_at timestamptz not null default now(),
      created_by uuid,
      updated_at timestamptz not null default now(),
      constraint snapshots_name unique (workspace_id, name),
      constraint snapshots_scope unique (workspace_id, id)
    );
    create index on snapshots (status) where status = 'building';
    alter table boxes add snapshot_id uuid,
      add constraint boxes_snapshot_id_fkey foreign key (workspace_id, snapshot_id)
        references snapshots (workspace_id, id);
    create index on boxes (workspace_id, snapshot_id);
    grant select, insert, update, delete on snapshots to sallyport_app;

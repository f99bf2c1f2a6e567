-- Bulk exports, and the run of each of their days. A run is RUNNING exactly as long as an attempt of a worker holds its lease.

    create table exports (
      id uuid primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      destination_id uuid not null,
      session_id uuid not null,
      source_id uuid,
      status text not null check (status in
        ('CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT', 'INTERVALSCHEDULED')),
      start_time text not null,
      end_time text,
      filter text,
      export_fields text[],
      format_version text not null,
      compression text not null,
      interval_hours integer,
      next_start text,
      next_due_at timestamptz,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      started_at timestamptz,
      finished_at timestamptz,
      unique (workspace_id, id),
      foreign key (workspace_id, destination_id) references export_destinations (workspace_id, id) on delete cascade,
      foreign key (workspace_id, source_id) references exports (workspace_id, id) on delete cascade,
      check ((status = 'INTERVALSCHEDULED') = (next_due_at is not null)),
      check ((end_time is null) = (interval_hours is not null))
    );
    create index exports_listed on exports (workspace_id, created_at desc, id);
    create index exports_of_destination on exports (workspace_id, destination_id);
    create unique index exports_of_source on exports (workspace_id, source_id, start_time) where source_id is not null;
    create index exports_at_work on exports (started_at) where status = 'RUNNING';
    create index exports_open on exports (workspace_id) where status in ('CREATED', 'RUNNING');
    create index exports_turns on exports (workspace_id, updated_at) where status not in ('CREATED', 'INTERVALSCHEDULED');
    create index exports_due on exports (next_due_at) where status = 'INTERVALSCHEDULED';
    grant select, insert, update on exports to sallyport_app;

    create table export_runs (
      id uuid primary key,
      workspace_id uuid not null,
      export_id uuid not null,
      destination_id uuid not null,
      status text not null check (status in
        ('CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT')),
      window_start text not null,
      window_end text not null,
      retry_number integer not null default 0,
      interruptions integer not null default 0,
      errors jsonb,
      progress jsonb,
      credentials_version integer,
      due_at timestamptz not null,
      worker text,
      lease_id uuid,
      lease_until timestamptz,
      attempt_at timestamptz,
      rows_read bigint,
      created_at timestamptz not null,
      updated_at timestamptz not null,
      finished_at timestamptz,
      unique (export_id, window_start),
      foreign key (workspace_id, export_id) references exports (workspace_id, id) on delete cascade,
      check ((status = 'RUNNING') = (lease_id is not null)),
      check ((status = 'RUNNING') = (lease_until is not null))
    );
    create index export_runs_of_export on export_runs (workspace_id, export_id, window_start);
    create index export_runs_waiting on export_runs (workspace_id, export_id, window_start) where status = 'CREATED';
    create index export_runs_at_work on export_runs (workspace_id, export_id) where status = 'RUNNING';
    create index export_runs_holding on export_runs (destination_id, credentials_version)
      where status in ('CREATED', 'RUNNING') and credentials_version is not null;
    create index export_runs_left on export_runs (finished_at)
      where status in ('FAILED', 'CANCELLED', 'TIMEDOUT') and progress -> 'pendingUpload' is not null;
    grant select, insert, update on export_runs to sallyport_app;

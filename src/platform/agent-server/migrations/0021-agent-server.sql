-- The agent server: assistants, threads, runs and their events, checkpoints of graphs.
-- JSON that only passes through is `json`, which keeps every text, U+0000 included; what is searched is `jsonb`.

    create table agent_assistants (
      assistant_id uuid primary key default gen_random_uuid(),
      graph_id text not null,
      -- The active one. The columns below are those of that version.
      version integer not null default 1 check (version > 0),
      name text not null,
      description text,
      config json not null default '{}',
      context json not null default '{}',
      metadata jsonb not null default '{}',
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create index on agent_assistants (graph_id);
    create index on agent_assistants using gin (metadata jsonb_path_ops);
    create index on agent_assistants (created_at, assistant_id);

    create table agent_assistant_versions (
      assistant_id uuid not null references agent_assistants on delete cascade,
      version integer not null check (version > 0),
      graph_id text not null,
      name text not null,
      description text,
      config json not null,
      context json not null,
      metadata jsonb not null,
      created_at timestamptz not null default now(),
      primary key (assistant_id, version)
    );

    create table agent_threads (
      thread_id uuid primary key default gen_random_uuid(),
      status text not null default 'idle' check (status in ('idle', 'busy', 'interrupted', 'error')),
      metadata jsonb not null default '{}',
      config json not null default '{}',
      -- Of the last state: as the graph gave them, and as they are searched, with U+0000 replaced.
      values json,
      searched_values jsonb,
      interrupts json not null default '{}',
      error json,
      -- Of a run without a thread: no list shows it, and it ends with its run.
      is_temporary boolean not null default false,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      state_updated_at timestamptz not null default now()
    );
    create index on agent_threads using gin (metadata jsonb_path_ops);
    create index on agent_threads using gin (searched_values jsonb_path_ops);
    create index on agent_threads (status) where not is_temporary;
    create index on agent_threads (thread_id) where is_temporary;
    create index on agent_threads (created_at, thread_id) where not is_temporary;
    create index on agent_threads (updated_at, thread_id) where not is_temporary;
    create index on agent_threads (state_updated_at, thread_id) where not is_temporary;

    create table agent_runs (
      run_id uuid primary key,
      thread_id uuid not null references agent_threads on delete cascade,
      assistant_id uuid not null references agent_assistants on delete cascade,
      -- Of the assistant, fixed when the run is created.
      assistant_version integer not null,
      graph_id text not null,
      status text not null default 'pending'
        check (status in ('pending', 'running', 'error', 'success', 'timeout', 'interrupted')),
      metadata jsonb not null default '{}',
      kwargs json not null,
      multitask_strategy text not null check (multitask_strategy in ('reject', 'interrupt', 'rollback', 'enqueue')),
      -- The order of the runs of a thread.
      position bigint generated always as identity,
      run_after timestamptz not null default now(),
      attempt integer not null default 0,
      -- Attempts that ended because their worker or their process was lost.
      losses integer not null default 0,
      -- Whose runs share the places: a digest of the identity; empty without one.
      party text not null default '',
      -- Whose run it is, while it runs.
      lease_owner uuid,
      lease_until timestamptz,
      -- What somebody has asked for: it ends so.
      cancellation text check (cancellation in ('interrupt', 'rollback')),
      -- Whether its events are stored as they come, for readers that reconnect.
      is_resumable boolean not null default false,
      -- The process whose client reads its events from the first on: any other process that executes it stores them.
      streamed_by uuid,
      -- The last values, or `{error, message}`.
      output json,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      ended_at timestamptz,
      check ((status = 'running') = (lease_owner is not null)),
      check ((lease_owner is null) = (lease_until is null))
    );
    create index on agent_runs (thread_id, position desc);
    create index on agent_runs (assistant_id);
    create index on agent_runs (party, run_after, position) where status = 'pending';
    create index on agent_runs (run_after) where status = 'pending';
    create index on agent_runs (thread_id, position) where status = 'pending';
    -- One run of a thread at a time.
    create unique index on agent_runs (thread_id) where status = 'running';
    create index on agent_runs (lease_until) where status = 'running';

    -- Who asked for a run that has not ended: what the authentication returned, sealed for the run.
    create table agent_run_users (
      run_id uuid primary key references agent_runs on delete cascade,
      sealed bytea not null
    );

    -- Results of runs whose temporary thread ended with them, for a while: somebody may wait for one.
    create table agent_run_results (
      run_id uuid primary key,
      thread_id uuid not null,
      status text not null,
      output json,
      -- Of the thread: by it callers see the result or not.
      metadata jsonb not null,
      ended_at timestamptz not null default now()
    );
    create index on agent_run_results (ended_at);

    -- Events of resumable runs, and of others that a reader in another process follows. They outlive their run for a while.
    create table agent_run_events (
      run_id uuid not null,
      id bigint not null,
      event text not null,
      -- JSON in one line.
      data text not null,
      created_at timestamptz not null default now(),
      primary key (run_id, id)
    );

    -- Names of checkpoints are compared by their bytes, which is their order, with any locale of the database.
    create table agent_checkpoints (
      thread_id uuid not null references agent_threads on delete cascade,
      checkpoint_ns text collate "C" not null,
      checkpoint_id text collate "C" not null,
      parent_checkpoint_id text,
      run_id uuid,
      type text not null,
      checkpoint bytea not null,
      metadata_type text not null,
      metadata bytea not null,
      -- As it is searched, with U+0000 replaced.
      searched_metadata jsonb not null default '{}',
      -- Versions of the channels, which are stored once.
      versions jsonb not null default '{}',
      primary key (thread_id, checkpoint_ns, checkpoint_id)
    );
    create index on agent_checkpoints (run_id) where run_id is not null;

    create table agent_checkpoint_values (
      thread_id uuid not null references agent_threads on delete cascade,
      checkpoint_ns text collate "C" not null,
      channel text collate "C" not null,
      version text collate "C" not null,
      type text not null,
      value bytea not null,
      primary key (thread_id, checkpoint_ns, channel, version)
    );

    create table agent_checkpoint_writes (
      thread_id uuid not null references agent_threads on delete cascade,
      checkpoint_ns text collate "C" not null,
      checkpoint_id text collate "C" not null,
      task_id text collate "C" not null,
      idx integer not null,
      -- The run that wrote it, or zeros: a run that is rolled back leaves what others wrote to the same checkpoint.
      run_id uuid not null default '00000000-0000-0000-0000-000000000000',
      position bigint generated always as identity,
      channel text not null,
      type text not null,
      value bytea not null,
      primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_id)
    );

    -- Statistics of a table of a few rows would make plans that read all of it, and connections keep them while it grows by
    -- thousands a second. Without statistics the plans are those by index.
    alter table agent_checkpoints set (autovacuum_analyze_threshold = 5000,
      autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 5000);
    alter table agent_checkpoint_values set (autovacuum_analyze_threshold = 5000,
      autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 5000);
    alter table agent_checkpoint_writes set (autovacuum_analyze_threshold = 5000,
      autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = 5000);

    grant select, insert, update, delete on agent_assistants, agent_assistant_versions, agent_threads, agent_runs, agent_run_users, agent_run_results,
      agent_run_events, agent_checkpoints, agent_checkpoint_values, agent_checkpoint_writes to sallyport_app;

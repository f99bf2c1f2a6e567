-- Traces: projects, runs, feedback and attachments. Runs are partitioned by the UTC day of their start, so that a query reads
-- the days of its window and retention drops whole days. What clients sent is kept as bytes; the columns beside it are derived for
-- search, with U+0000 replaced and within limits of size.

    create table trace_projects (
      workspace_id uuid not null references workspaces on delete cascade,
      id uuid not null default gen_random_uuid(),
      name text not null,
      description text,
      extra json,
      start_time timestamptz not null default now(),
      end_time timestamptz,
      default_dataset_id uuid,
      reference_dataset_id uuid,
      created_at timestamptz not null default now(),
      modified_at timestamptz not null default now(),
      primary key (workspace_id, id),
      constraint trace_projects_name unique (workspace_id, name)
    );
    create index on trace_projects (workspace_id, created_at, id);

    create table trace_runs (
      workspace_id uuid not null,
      session_id uuid not null,
      start_time timestamptz not null,
      id uuid not null,
      trace_id uuid not null,
      parent_run_id uuid,
      parent_run_ids uuid[] not null default '{}',
      dotted_order text collate "C" not null,
      name text not null default '',
      run_type text not null default 'chain',
      end_time timestamptz,
      -- For search; as it was sent in error_json.
      error text,
      tags text[] not null default '{}',
      reference_example_id uuid,
      -- The member `metadata` of `extra`: an object.
      metadata jsonb not null default '{}',
      thread_id text,
      first_token_time timestamptz,
      -- `{input_tokens, output_tokens, total_tokens, input_cost, output_cost, total_cost}`, found in `extra` and in `outputs`.
      usage_in_extra jsonb,
      usage_in_outputs jsonb,
      -- Objects of the path of each value and its text, and the beginning of the whole text.
      inputs_pairs jsonb not null default '{}',
      outputs_pairs jsonb not null default '{}',
      inputs_text text not null default '',
      outputs_text text not null default '',
      -- JSON as it was sent: a zstd frame, or the text itself where it is short. No JSON begins as a frame does.
      inputs_json bytea,
      outputs_json bytea,
      extra_json bytea,
      events_json bytea,
      serialized_json bytea,
      error_json bytea,
      -- Bits of the fields that were sent, and of those whose value is that of a PATCH (`runs/run-fields.ts`).
      given integer not null default 0,
      patched integer not null default 0,
      received_at timestamptz not null default now(),
      is_root boolean generated always as (parent_run_id is null) stored,
      status text generated always as
        (case when error is not null then 'error' when end_time is not null then 'success' else 'pending' end) stored,
      -- Seconds.
      latency numeric generated always as (extract(epoch from end_time - start_time)) stored,
      prompt_tokens bigint generated always as ((coalesce(usage_in_extra, usage_in_outputs) ->> 'input_tokens')::bigint) stored,
      completion_tokens bigint generated always as ((coalesce(usage_in_extra, usage_in_outputs) ->> 'output_tokens')::bigint) stored,
      total_tokens bigint generated always as ((coalesce(usage_in_extra, usage_in_outputs) ->> 'total_tokens')::bigint) stored,
      prompt_cost numeric(18, 9) generated always as ((coalesce(usage_in_extra, usage_in_outputs) ->> 'input_cost')::numeric) stored,
      completion_cost numeric(18, 9) generated always as
        ((coalesce(usage_in_extra, usage_in_outputs) ->> 'output_cost')::numeric) stored,
      total_cost numeric(18, 9) generated always as ((coalesce(usage_in_extra, usage_in_outputs) ->> 'total_cost')::numeric) stored,
      primary key (workspace_id, session_id, start_time, id)
    ) partition by range (start_time);
    create index trace_runs_of_trace on trace_runs (workspace_id, trace_id);
    create index trace_runs_of_parent on trace_runs (workspace_id, parent_run_id) where parent_run_id is not null;
    -- Compressed already, or short.
    alter table trace_runs
      alter inputs_json set storage external, alter outputs_json set storage external, alter extra_json set storage external,
      alter events_json set storage external, alter serialized_json set storage external, alter error_json set storage external;

    -- Where the one row of a run is: who merges a run locks its place, so that two parts of a run never become two rows.
    create table trace_run_places (
      workspace_id uuid not null,
      id uuid not null,
      session_id uuid not null,
      start_time timestamptz not null,
      -- How well project and start are known: a part that knows better moves the run.
      session_rank smallint not null,
      start_rank smallint not null,
      -- Where the row was before the last merge; null for a run that is new.
      last_session_id uuid,
      last_start_time timestamptz,
      last_start_rank smallint,
      primary key (workspace_id, id)
    );
    create index on trace_run_places using brin (start_time);

    create table trace_feedback (
      workspace_id uuid not null references workspaces on delete cascade,
      id uuid not null default gen_random_uuid(),
      run_id uuid,
      trace_id uuid,
      session_id uuid,
      key text not null,
      score double precision,
      -- A number, a truth value, a text or an object.
      value jsonb,
      comment text,
      correction jsonb,
      -- `{type, metadata, …}`
      feedback_source jsonb,
      created_at timestamptz not null default now(),
      modified_at timestamptz not null default now(),
      primary key (workspace_id, id)
    );
    create index on trace_feedback (workspace_id, run_id);
    create index on trace_feedback (workspace_id, session_id);
    -- Came before its run: a job looks for that.
    create index trace_feedback_unplaced on trace_feedback (created_at, id) where session_id is null and run_id is not null;
    create index on trace_feedback (workspace_id, created_at, id);
    create index on trace_feedback using brin (created_at);

    create table trace_attachments (
      workspace_id uuid not null,
      run_id uuid not null,
      name text not null,
      mime_type text not null,
      size bigint not null,
      -- Of the artifacts place.
      object text not null,
      created_at timestamptz not null default now(),
      primary key (workspace_id, run_id, name)
    );
    create index on trace_attachments (object);
    create index on trace_attachments using brin (created_at);

    -- Sign the addresses of attachments: the newest signs, and all of them are accepted. Of the database, so that every process of it
    -- accepts what another one has signed.
    create table trace_signing_keys (
      key bytea primary key,
      created_at timestamptz not null default now()
    );
    insert into trace_signing_keys (key) values (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

    -- Projects that are gone, whose runs a job removes: a project may have more of them than a request can delete.
    create table trace_removals (
      workspace_id uuid not null,
      session_id uuid not null,
      deleted_at timestamptz not null default now(),
      primary key (workspace_id, session_id)
    );
    create function trace_note_removal() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      begin
        insert into public.trace_removals (workspace_id, session_id) values (old.workspace_id, old.id) on conflict do nothing;
        return null;
      end $$;
    create trigger trace_note_removal after delete on trace_projects for each row execute function trace_note_removal();

    -- Makes the partition of a day, without keeping anybody from reading or writing the others; false where there is one.
    create function trace_make_partition(day date) returns boolean
      language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      declare
        partition text := 'trace_runs_' || to_char(day, 'YYYYMMDD');
      begin
        if to_regclass(format('public.%I', partition)) is not null then return false; end if;
        perform pg_advisory_xact_lock(5271009027);
        -- To wait for that lock tells a session nothing of what others have committed: its cache would still say that there is none.
        if exists (select from pg_class where relnamespace = 'public'::regnamespace and relname = partition) then return false; end if;
        execute format('create table public.%I (like public.trace_runs including defaults including generated including constraints
          including storage)', partition);
        execute format('alter table public.trace_runs attach partition public.%I for values from (%L) to (%L)', partition,
          to_char(day, 'YYYY-MM-DD') || ' 00:00:00Z', to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00Z');
        return true;
      end $$;

    -- Drops the partition of a day; fails where queries keep it from its locks for longer than half a second.
    create function trace_drop_partition(day date) returns void
      language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '500ms' as $$
      begin
        execute format('drop table if exists public.%I', 'trace_runs_' || to_char(day, 'YYYYMMDD'));
      end $$;

    revoke all on function trace_make_partition, trace_drop_partition, trace_note_removal from public;
    grant execute on function trace_make_partition, trace_drop_partition to sallyport_app;
    grant select, insert, update, delete
      on trace_projects, trace_runs, trace_run_places, trace_feedback, trace_attachments, trace_removals to sallyport_app;
    grant select, insert, delete on trace_signing_keys to sallyport_app;

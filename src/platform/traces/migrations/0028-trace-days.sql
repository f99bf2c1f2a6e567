-- Days of runs are made in transactions of their own, projects know between which starts they have runs, and feedback that came before
-- its run is found by workspace.

    -- Who waits for that lock, or holds it and waits for another one, fails within a second, and is tried again.
    alter function trace_make_partition(date) set lock_timeout = '900ms';

    -- Within which starts a project has had runs: its partitions, and its place in the order of the latest runs. Also of runs that have
    -- moved to another project; without a reference, as runs and their places are.
    create table trace_project_spans (
      workspace_id uuid not null,
      session_id uuid not null,
      first_start_time timestamptz not null,
      last_start_time timestamptz not null,
      primary key (workspace_id, session_id)
    ) with (fillfactor = 50);
    insert into trace_project_spans
      select workspace_id, session_id, min(start_time), max(start_time) from trace_run_places group by 1, 2;
    grant select, insert, update, delete on trace_project_spans to sallyport_app;

    drop index trace_feedback_unplaced;
    create index trace_feedback_unplaced on trace_feedback (workspace_id, created_at, id) where session_id is null and run_id is not null;

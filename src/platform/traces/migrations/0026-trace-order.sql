-- Pages of all projects of a workspace, or of several, in the order of the starts.

    create index trace_runs_in_order on trace_runs (workspace_id, start_time, id);

-- The tokens with which runners send the runs of deployments: one for each deployment, which ends with it.

    create table trace_tokens (
      deployment_id uuid primary key,
      workspace_id uuid not null references workspaces on delete cascade,
      hash bytea not null constraint trace_tokens_hash unique,
      created_at timestamptz not null default now(),
      foreign key (workspace_id, deployment_id) references deployments (workspace_id, id) on delete cascade
    );
    create index on trace_tokens (workspace_id, deployment_id);
    grant select, insert, update, delete on trace_tokens to sallyport_app;

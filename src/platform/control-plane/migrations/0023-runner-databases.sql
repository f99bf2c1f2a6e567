-- The databases that this installation has made for deployments on its server. A row outlives its deployment, which may go with its
-- workspace, until the database and its role are dropped: nothing else of the server ever is.

create table runner_databases (
  name text primary key,
  deployment_id uuid not null,
  created_at timestamptz not null default now()
);
grant select, insert, delete on runner_databases to sallyport_app;

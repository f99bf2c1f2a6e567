-- Listeners of the control plane: the compute (Kubernetes clusters) that a workspace has registered for its deployments.

    create table listeners (
      id uuid primary key default gen_random_uuid(),
      workspace_id uuid not null references workspaces on delete cascade,
      compute_type text not null check (compute_type = 'k8s'),
      compute_id text not null,
      compute_config jsonb not null,
      version text,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      constraint listeners_compute unique (workspace_id, compute_id)
    );
    grant select, insert, update, delete on listeners to sallyport_app;
  
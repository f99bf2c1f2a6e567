-- The newest events of one operation, and of one workspace, without walking all events of the organization. Writers of events
-- wait until the indexes are complete. Whoever has a large log creates them before, with `create index concurrently`.

create index if not exists audit_events_by_operation
  on public.audit_events (organization_id, operation, time desc, seq desc);
create index if not exists audit_events_by_workspace
  on public.audit_events (organization_id, workspace_id, time desc, seq desc) where workspace_id is not null;

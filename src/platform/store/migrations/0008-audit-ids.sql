-- The caller chooses the id of an event: it knows it before the commit, and need not wait for it. A process of an earlier version
-- that still runs calls audit_append.
create function public.audit_append_with_id(
  organization uuid, operation text, workspace uuid, record text, id uuid)
  returns uuid
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
  declare
    head public.audit_heads;
    event public.audit_events;
  begin
    head := public.audit_lock(organization);
    event.organization_id := organization;
    event.seq := head.seq + 1;
    event.id := id;
    event.time := greatest(
      head.time,
      date_trunc('milliseconds', clock_timestamp()),
      (select settled.time + interval '1 millisecond' from public.audit_settled as settled
        where settled.organization_id = organization));
    event.operation := operation;
    event.workspace_id := workspace;
    event.record := record;
    event.previous_hash := head.hash;
    event.hash := public.audit_hash(event);
    insert into public.audit_events select (event).*;
    update public.audit_heads set seq = event.seq, hash = event.hash, time = event.time
      where organization_id = organization;
    return event.id;
  end
$$;

create or replace function public.audit_append(organization uuid, operation text, workspace uuid, record text)
  returns uuid
  language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
  begin
    return public.audit_append_with_id(organization, operation, workspace, record, gen_random_uuid());
  end
$$;

revoke all on function public.audit_append_with_id(uuid, text, uuid, text, uuid) from public;
grant execute on function public.audit_append_with_id(uuid, text, uuid, text, uuid) to sallyport_app;

-- Reads of the audit log lock no head, so that they neither wait in the line of the writers nor hold them up. The end of a
-- window that was read is stored in a table of its own, which writers only read.

  create table public.audit_settled (
    organization_id uuid primary key,
    time timestamptz(3) not null
  ) with (fillfactor = 50);

  -- As before, and later than every window that was read: also when the clock is set back in between.
  create or replace function public.audit_append(organization uuid, operation text, workspace uuid, record text)
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
      event.id := gen_random_uuid();
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

  -- Every event that is appended after this statement is later than the returned time, which is never ahead of the clock. A
  -- writer that holds the head may still add an earlier one: audit_writer names it. Before its first event an organization
  -- has no head that a writer could be seen to hold, so that the insert here waits for it.
  create or replace function public.audit_settle(organization uuid, until timestamptz) returns timestamptz
    language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $$
    declare
      nothing bytea := decode(repeat('00', 32), 'hex');
      last timestamptz;
      reached timestamptz;
    begin
      select head.time into last from public.audit_heads as head where head.organization_id = organization;
      if not found then
        insert into public.audit_heads values (organization, 0, nothing, '-infinity', 0, nothing)
          on conflict do nothing;
        select head.time into strict last from public.audit_heads as head
          where head.organization_id = organization;
      end if;
      reached := least(until, greatest(last, date_trunc('milliseconds', clock_timestamp())));
      if reached >= last and not exists (
        select from public.audit_settled as settled
        where settled.organization_id = organization and settled.time >= reached
      ) then
        insert into public.audit_settled as settled values (organization, reached)
          on conflict (organization_id) do update set time = greatest(settled.time, excluded.time);
      end if;
      return reached;
    end
  $$;

  -- The transaction that holds the head of an organization now, null when none does. Read from the row itself: a lock on it
  -- would wait in the line of the writers. A row has the lower half of the number of a transaction. One that began after
  -- this statement is left out, because its event is later than every window that was settled before.
  create function public.audit_writer(organization uuid) returns xid8
    language sql volatile set search_path = pg_catalog, pg_temp
  as $$
    with held as (
      select next, (next - head.xmax::text::bigint) & 4294967295 as age
      from public.audit_heads as head,
        (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) as counter
      where head.organization_id = organization and head.xmax::text <> '0'
    ), writer as materialized (
      select (next - age)::text::xid8 as id from held where age between 1 and 2147483647 and next > age
    )
    select id from writer where pg_xact_status(id) = 'in progress'
  $$;

  revoke all on public.audit_settled from public, sallyport_app;
  grant select on public.audit_settled to sallyport_app;
  revoke all on function public.audit_writer(uuid) from public;
  grant execute on function public.audit_writer(uuid) to sallyport_app;

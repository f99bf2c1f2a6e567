-- The audit log: a chain of events for each organization. Events are added by `audit_append` and removed by
-- `audit_expire` only. Both run as the owner, with a fixed search path that a caller cannot change.

  create table public.audit_events (
    organization_id uuid not null,
    seq bigint not null,
    id uuid not null constraint audit_events_id unique,
    time timestamptz(3) not null,
    operation text not null,
    workspace_id uuid,
    record text not null,
    previous_hash bytea not null,
    hash bytea not null,
    primary key (organization_id, seq)
  );
  create index on public.audit_events (organization_id, time, seq);
  create table public.audit_heads (
    organization_id uuid primary key,
    seq bigint not null,
    hash bytea not null,
    time timestamptz(3) not null,
    floor_seq bigint not null,
    floor_hash bytea not null
  ) with (fillfactor = 50);
  create table public.audit_checkpoints (
    organization_id uuid not null,
    signer text not null,
    seq bigint not null,
    primary key (organization_id, signer)
  );

  -- Every part carries its length, so that no two events have the same encoding. PostgreSQL resolved the names in these
  -- function bodies when it created the functions, so a later search path does not affect them.
  create function public.audit_part(part bytea) returns bytea
    language sql immutable
    return int4send(length(coalesce(part, ''))) || coalesce(part, '');

  create function public.audit_hash(event public.audit_events) returns bytea
    language sql immutable
    return sha256(
      public.audit_part(convert_to('sallyport audit 1', 'UTF8'))
      || public.audit_part(uuid_send(event.organization_id))
      || public.audit_part(int8send(event.seq))
      || public.audit_part(uuid_send(event.id))
      || public.audit_part(int8send((extract(epoch from event.time) * 1000)::bigint))
      || public.audit_part(convert_to(event.operation, 'UTF8'))
      || public.audit_part(uuid_send(event.workspace_id))
      || public.audit_part(convert_to(event.record, 'UTF8'))
      || public.audit_part(event.previous_hash));

  -- The first caller creates the head, so that its lock also orders the very first event of an organization.
  create function public.audit_lock(organization uuid) returns public.audit_heads
    language plpgsql set search_path = pg_catalog, pg_temp
  as $$
    declare
      nothing bytea := decode(repeat('00', 32), 'hex');
      head public.audit_heads;
    begin
      select * into head from public.audit_heads where organization_id = organization for update;
      if not found then
        insert into public.audit_heads values (organization, 0, nothing, '-infinity', 0, nothing)
          on conflict do nothing;
        select * into strict head from public.audit_heads where organization_id = organization for update;
      end if;
      return head;
    end
  $$;

  -- The time is read while the head is locked, so the times of events increase with their numbers, and a transaction that
  -- locks the head after some moment sees every event from before that moment.
  create function public.audit_append(organization uuid, operation text, workspace uuid, record text) returns uuid
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
      event.time := greatest(head.time, date_trunc('milliseconds', clock_timestamp()));
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

  -- Returns the end of a window that is complete: it waits for running writers, and later events get later times even if
  -- the clock is set back. The last event is included, even when it happened in this millisecond. No writer takes an hour
  -- from its event to its commit, so older windows need not wait.
  create function public.audit_settle(organization uuid, until timestamptz) returns timestamptz
    language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $$
    declare
      head public.audit_heads;
      settled timestamptz := until;
    begin
      if until < clock_timestamp() - interval '1 hour' then
        return until;
      end if;
      head := public.audit_lock(organization);
      settled := least(until, greatest(
        head.time,
        date_trunc('milliseconds', clock_timestamp()) + interval '1 millisecond',
        (select time + interval '1 millisecond' from public.audit_events
          where organization_id = organization and seq = head.seq)));
      update public.audit_heads set time = settled where organization_id = organization and time < settled;
      return settled;
    end
  $$;

  -- Removes at most `most` events, since writers wait for it. In hours, because the length of 400 days depends on the time
  -- zone of the session, which a caller can set.
  create function public.audit_expire(organization uuid, before timestamptz, most integer) returns integer
    language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $$
    declare
      head public.audit_heads;
      last public.audit_events;
    begin
      select * into head from public.audit_heads where organization_id = organization for update;
      select * into last from public.audit_events
        where organization_id = organization
          and seq <= head.floor_seq + most
          and time < least(before, clock_timestamp() - interval '9600 hours')
        order by seq desc limit 1;
      if last.seq is null then
        return 0;
      end if;
      update public.audit_heads set floor_seq = last.seq, floor_hash = last.hash
        where organization_id = organization;
      delete from public.audit_events where organization_id = organization and seq <= last.seq;
      return (last.seq - head.floor_seq)::integer;
    end
  $$;

  -- Stores the last event that the checkpoints of each key cover. It never goes back, and never beyond the head.
  create function public.audit_checkpointed(organization uuid, signer text, reached bigint) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
  as $$
    insert into public.audit_checkpoints as checkpoint
      select head.organization_id, audit_checkpointed.signer, reached from public.audit_heads as head
        where head.organization_id = organization and reached between 1 and head.seq
      on conflict (organization_id, signer) do update set seq = greatest(checkpoint.seq, reached)
  $$;

  create function public.audit_refuse() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
  as $$
    begin
      if tg_op = 'DELETE' and tg_table_name = 'audit_events' then
        if old.time < clock_timestamp() - interval '9600 hours' and exists (
          select from public.audit_heads
          where organization_id = old.organization_id and floor_seq >= old.seq
        ) then
          return old;
        end if;
      end if;
      raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
    end
  $$;
  create trigger audit_events_kept before update or delete on public.audit_events
    for each row execute function public.audit_refuse();
  create trigger audit_events_whole before truncate on public.audit_events
    for each statement execute function public.audit_refuse();
  create trigger audit_heads_kept before delete on public.audit_heads
    for each row execute function public.audit_refuse();
  create trigger audit_heads_whole before truncate on public.audit_heads
    for each statement execute function public.audit_refuse();
  create trigger audit_checkpoints_kept before delete on public.audit_checkpoints
    for each row execute function public.audit_refuse();
  create trigger audit_checkpoints_whole before truncate on public.audit_checkpoints
    for each statement execute function public.audit_refuse();

  -- Roles belong to the whole server, so the migration of another database may create this one at the same time.
  do $$ begin
    if not exists (select from pg_roles where rolname = 'sallyport_app') then
      create role sallyport_app;
    end if;
  exception when duplicate_object or unique_violation then null;
  end $$;
  revoke all on public.audit_events, public.audit_heads, public.audit_checkpoints from public, sallyport_app;
  grant select on public.audit_events, public.audit_heads, public.audit_checkpoints to sallyport_app;
  revoke all on function
    public.audit_part(bytea), public.audit_hash(public.audit_events), public.audit_refuse(),
    public.audit_lock(uuid),
    public.audit_append(uuid, text, uuid, text), public.audit_settle(uuid, timestamptz),
    public.audit_expire(uuid, timestamptz, integer), public.audit_checkpointed(uuid, text, bigint)
    from public;
  grant execute on function
    public.audit_append(uuid, text, uuid, text), public.audit_settle(uuid, timestamptz),
    public.audit_expire(uuid, timestamptz, integer), public.audit_checkpointed(uuid, text, bigint)
    to sallyport_app;

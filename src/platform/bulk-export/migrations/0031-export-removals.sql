-- What a deleted workspace has exported goes in steps, by a job: it may have more runs than the deletion of the workspace can wait for.

    create table export_removals (
      workspace_id uuid primary key,
      deleted_at timestamptz not null default now()
    );
    create function export_note_removal() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      begin
        if exists (select from public.exports where workspace_id = old.id) then
          insert into public.export_removals (workspace_id) values (old.id) on conflict do nothing;
        end if;
        return null;
      end $$;
    create trigger export_note_removal after delete on workspaces for each row execute function export_note_removal();
    -- An export is created under the lock of its workspace, which the deletion takes too.
    alter table exports drop constraint exports_workspace_id_fkey;
    alter table exports drop constraint exports_workspace_id_destination_id_fkey;

    revoke all on function export_note_removal from public;
    grant select, delete on export_removals to sallyport_app;
    grant delete on exports, export_runs to sallyport_app;

// Records every committed insert, update and delete in every table, and every audit event, with triggers that the tests
// install. The tables are listed from the database, so that a new one cannot be forgotten.
import { sql } from 'kysely';
import type { Database } from '../../../src/platform/store/database.ts';

export type LoggedEvent = { readonly operation: string; readonly record: string };
export type ChangeLog = {
  /** The changes since the last call. Audit rows and the last-use time of a key do not count as changes. */
  take(): Promise<{ readonly changes: readonly string[]; readonly events: readonly LoggedEvent[] }>;
};

export async function createChangeLog(db: Database): Promise<ChangeLog> {
  for (const statement of SETUP) await sql.raw(statement).execute(db);
  let last = 0;
  let seen = 0;
  return {
    async take() {
      const { rows } = await sql<{ at: string; what: string; record: string | null }>`
        select at, what, null as record from changes_of_tests.changes where at > ${last}
        union all
        (select seen, operation, record from changes_of_tests.events where seen > ${seen})
        order by at`.execute(db);
      const [changes, events] = [rows.filter(isChange), rows.filter((row) => !isChange(row))];
      last = Number(changes.at(-1)?.at ?? last);
      seen = Number(events.at(-1)?.at ?? seen);
      return {
        changes: changes.map(({ what }) => what),
        events: events.map(({ what, record }) => ({ operation: what, record: record ?? '' })),
      };
    },
  };
}

function isChange({ record }: { readonly record: string | null }): boolean {
  return record === null;
}

const SETUP: readonly string[] = [
  `create schema changes_of_tests`,
  `create table changes_of_tests.changes (at bigserial primary key, what text not null)`,
  `create table changes_of_tests.events (seen bigserial primary key, operation text not null, record text not null)`,
  `create function changes_of_tests.note() returns trigger language plpgsql security definer as $$
    begin
      if tg_op <> 'UPDATE' or to_jsonb(old) - 'last_used_at' <> to_jsonb(new) - 'last_used_at' then
        insert into changes_of_tests.changes (what) values (tg_op || ' ' || tg_table_name);
      end if;
      return null;
    end $$`,
  `create function changes_of_tests.note_event() returns trigger language plpgsql security definer as $$
    begin
      insert into changes_of_tests.events (operation, record) values (new.operation, new.record);
      return null;
    end $$`,
  `do $$ declare name text; begin
    for name in select table_name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' and table_name not like 'audit\\_%'
    loop
      execute format('create trigger changes_of_tests after insert or update or delete on public.%I
        for each row execute function changes_of_tests.note()', name);
    end loop;
  end $$`,
  `create trigger changes_of_tests after insert on public.audit_events
    for each row execute function changes_of_tests.note_event()`,
];

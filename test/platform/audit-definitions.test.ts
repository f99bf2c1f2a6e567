// What the owner of the tables can change without changing an event, so that the log shows less than is stored, or accepts
// changes from then on.
import { beforeEach, expect, it } from 'vitest';
import { findChangedDefinitions } from '../../src/platform/audit-definitions.ts';
import { sql } from '../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/platform-database.ts';

let database: TestDatabase;
// One for each test: the definitions themselves are changed.
beforeEach(async () => {
  database = await createTestDatabase();
  return () => database[Symbol.asyncDispose]();
});

async function change(statements: string): Promise<void> {
  for (const statement of statements.split(';;'))
    if (statement.trim() !== '') await sql.raw(statement).execute(database.owner.db);
}

it('finds nothing in the definitions of the migrations', async () => {
  expect(await findChangedDefinitions(database.store.db)).toEqual([]);
});

it.each([
  [
    'row security and its policy',
    `alter table audit_events enable row level security;;
     create policy hidden on audit_events using (operation <> 'create_service_key')`,
    [
      'audit_events has row security, which can hide events',
      'audit_events has the policy hidden, which can hide events',
    ],
  ],
  [
    'a view in the place of the table',
    `alter table audit_events rename to audit_all;;
     create view audit_events as select * from audit_all where operation <> 'create_service_key'`,
    [
      'audit_events is not a table: what it shows may differ from what is stored',
      'audit_events lacks its trigger audit_events_kept',
      'audit_events lacks its trigger audit_events_whole',
    ],
  ],
  [
    'a rule',
    'create rule lost as on insert to audit_events do instead nothing',
    ['audit_events has the rule lost, which changes statements'],
  ],
  [
    'a trigger that was dropped',
    'drop trigger audit_events_kept on audit_events',
    ['audit_events lacks its trigger audit_events_kept'],
  ],
  [
    'disabled triggers',
    'alter table audit_heads disable trigger all',
    [
      'the trigger audit_heads_kept of audit_heads is disabled',
      'the trigger audit_heads_whole of audit_heads is disabled',
    ],
  ],
  [
    'a trigger with another moment',
    `drop trigger audit_events_kept on audit_events;;
     create trigger audit_events_kept before update on audit_events for each row execute function audit_refuse()`,
    ['the trigger audit_events_kept of audit_events was changed'],
  ],
  [
    'a trigger with a condition',
    `drop trigger audit_events_kept on audit_events;;
     create trigger audit_events_kept before update or delete on audit_events
       for each row when (old.seq > 10) execute function audit_refuse()`,
    ['the trigger audit_events_kept of audit_events was changed'],
  ],
  [
    'a trigger of somebody else',
    `create function lose() returns trigger language plpgsql as $$ begin return null; end $$;;
     create trigger lost before insert on audit_events for each row execute function lose()`,
    ['audit_events has another trigger: lost'],
  ],
  [
    'triggers that run for nobody',
    `do $$ begin execute format('alter database %I set session_replication_role = replica', current_database()); end $$`,
    ['session_replication_role is set for every connection: no trigger runs'],
  ],
  [
    'a function with another body',
    `create or replace function audit_refuse() returns trigger
       language plpgsql set search_path = pg_catalog, pg_temp as $$ begin return old; end $$`,
    ['the function audit_refuse is not the one of this version'],
  ],
  [
    'a function that another one hides',
    `create function audit_append(organization uuid, operation text, workspace uuid, record varchar) returns uuid
       language sql as $$ select gen_random_uuid() $$`,
    ['the function audit_append is not the one of this version'],
  ],
  [
    'a function without its search path',
    'alter function audit_append(uuid, text, uuid, text) reset search_path',
    ['the function audit_append is not the one of this version'],
  ],
  [
    'privileges of the platform',
    'grant update (record) on audit_events to sallyport_app',
    ['the role sallyport_app may change audit_events'],
  ],
])('finds %s', async (_, statements, expected) => {
  await change(statements);
  // Its first connection: a setting of the database holds for those that are opened later.
  expect(await findChangedDefinitions(database.store.db)).toEqual(expected);
});

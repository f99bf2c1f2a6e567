// Compares the definitions of the audit log in the database with those of the migrations: tables, triggers, functions and
// privileges. The owner of the tables can change them, so that the log shows less than is stored, or accepts changes.
import type { Database } from './store/database.ts';
import { groundMigrations } from './migrations.ts';
import { readMigration } from './store/migration.ts';
import { RUNTIME } from './store/roles.ts';
import { sql } from './store/sql.ts';

const TABLES: readonly string[] = ['audit_events', 'audit_heads', 'audit_checkpoints', 'audit_settled'];

/** One sentence for each difference; none for the definitions of this version, or of an earlier one. */
export async function findChangedDefinitions(db: Database): Promise<readonly string[]> {
  const text = groundMigrations.map((file) => readMigration(file).sql).join('\n');
  return [
    ...(await checkTables(db)),
    ...(await checkTriggers(db, parseTriggers(text))),
    ...(await checkFunctions(db, parseFunctions(text))),
  ];
}

type TableRow = {
  readonly name: string;
  readonly isTable: boolean;
  readonly hasRowSecurity: boolean;
  readonly policies: readonly string[];
  readonly rules: readonly string[];
  readonly isWritable: boolean;
};

async function checkTables(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<TableRow>`
    select c.relname as name, c.relkind in ('r', 'p') as "isTable", c.relrowsecurity as "hasRowSecurity",
      array(select polname::text from pg_policy where polrelid = c.oid) as policies,
      array(select rulename::text from pg_rewrite where ev_class = c.oid) as rules,
      has_any_column_privilege(${RUNTIME}, c.oid, 'insert, update')
        or has_table_privilege(${RUNTIME}, c.oid, 'delete, truncate, trigger') as "isWritable"
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relname = any (${TABLES})
    order by c.relname`.execute(db);
  const replication = await sql<{ readonly role: string }>`
    select current_setting('session_replication_role') as role`.execute(db);
  const off = replication.rows.some(({ role }) => role !== 'origin');
  return [
    ...(off ? ['session_replication_role is set for every connection: no trigger runs'] : []),
    ...rows.flatMap(({ name, isTable, hasRowSecurity, policies, rules, isWritable }) => [
      ...(isTable ? [] : [`${name} is not a table: what it shows may differ from what is stored`]),
      ...(hasRowSecurity ? [`${name} has row security, which can hide events`] : []),
      ...policies.map((policy) => `${name} has the policy ${policy}, which can hide events`),
      ...(isTable ? rules.map((rule) => `${name} has the rule ${rule}, which changes statements`) : []),
      ...(isWritable ? [`the role ${RUNTIME} may change ${name}`] : []),
    ]),
  ];
}

type Trigger = {
  readonly name: string;
  readonly table: string;
  /** As pg_trigger has it in tgtype. */
  readonly type: number;
  readonly calls: string;
};
type TriggerRow = Trigger & { readonly isEnabled: boolean; readonly isConditional: boolean };

const BEFORE = 2;
const EVENTS: Readonly<Record<string, number>> = { insert: 4, delete: 8, update: 16, truncate: 32 };
const TRIGGER =
  /create trigger (\w+) before ([a-z ]+) on public\.(audit_\w+)\s+for each (row|statement) execute function public\.(\w+)\(\)/g;

function parseTriggers(text: string): readonly Trigger[] {
  return [...text.matchAll(TRIGGER)].map(([, name = '', events = '', table = '', level, calls = '']) => {
    const bits = events.split(' or ').map((event) => EVENTS[event.trim()] ?? 0);
    const type = bits.reduce((sum, bit) => sum + bit, BEFORE + (level === 'row' ? 1 : 0));
    return { name, table, type, calls };
  });
}

async function checkTriggers(db: Database, expected: readonly Trigger[]): Promise<readonly string[]> {
  const { rows } = await sql<TriggerRow>`
    select t.tgname as name, c.relname as table, t.tgtype as type,
      case when p.pronamespace = 'public'::regnamespace then p.proname else '' end as calls,
      t.tgenabled in ('O', 'A') as "isEnabled",
      t.tgqual is not null or t.tgattr::text <> '' as "isConditional"
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and c.relnamespace = 'public'::regnamespace and c.relname = any (${TABLES})
    order by c.relname, t.tgname`.execute(db);
  const found = new Map(rows.map((row) => [`${row.table} ${row.name}`, row]));
  const missing = expected.flatMap(({ name, table, type, calls }) => {
    const row = found.get(`${table} ${name}`);
    found.delete(`${table} ${name}`);
    if (row === undefined) return [`${table} lacks its trigger ${name}`];
    if (!row.isEnabled) return [`the trigger ${name} of ${table} is disabled`];
    const isSame = row.type === type && row.calls === calls && !row.isConditional;
    return isSame ? [] : [`the trigger ${name} of ${table} was changed`];
  });
  return [
    ...missing,
    ...[...found.values()].map(({ name, table }) => `${table} has another trigger: ${name}`),
  ];
}

type FunctionRow = {
  readonly name: string;
  /** The text after `as`; empty where the body is parsed SQL, which is no text. */
  readonly body: string;
  readonly language: string;
  readonly isDefiner: boolean;
  readonly isImmutable: boolean;
  readonly settings: string;
};

const FUNCTION =
  /create (?:or replace )?function public\.(audit_\w+)\([^)]*\)([\s\S]*?)(?:as \$\$([\s\S]*?)\$\$|\breturn\b)/g;

/** Every version of each. */
function parseFunctions(text: string): readonly FunctionRow[] {
  return [...text.matchAll(FUNCTION)].map(([, name = '', header = '', body = '']) => ({
    name,
    body,
    language: /\blanguage (\w+)/.exec(header)?.[1] ?? '',
    isDefiner: /\bsecurity definer\b/.test(header),
    isImmutable: /\bimmutable\b/.test(header),
    settings: /\bset search_path = ([\w, ]+\w)/.exec(header)?.[1] ?? '',
  }));
}

/** What a changed audit_hash returns is found by the verification itself, which computes every hash. */
async function checkFunctions(db: Database, known: readonly FunctionRow[]): Promise<readonly string[]> {
  const names = [...new Set(known.map(({ name }) => name))];
  const { rows } = await sql<FunctionRow>`
    select p.proname as name, p.prosrc as body, l.lanname as language, p.prosecdef as "isDefiner",
      p.provolatile = 'i' as "isImmutable",
      coalesce(replace(array_to_string(p.proconfig, ';'), 'search_path=', ''), '') as settings
    from pg_proc p join pg_language l on l.oid = p.prolang
    where p.pronamespace = 'public'::regnamespace and p.proname = any (${names})
    order by p.proname`.execute(db);
  const accepted = new Set(known.map(toText));
  const changed = rows.filter((row) => !accepted.has(toText(row)));
  return changed.map(({ name }) => `the function ${name} is not the one of this version`);
}

function toText({ name, body, language, isDefiner, isImmutable, settings }: FunctionRow): string {
  return JSON.stringify([name, body, language, isDefiner, isImmutable, settings]);
}

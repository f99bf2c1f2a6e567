// Parses DATABASE_URL, the address of an external PostgreSQL server, as providers hand it out. Issues name the variable and
// never its value, which contains a password. What the platform does not know is rejected: it could weaken TLS.
import { parse } from 'pg-connection-string';
import { type Parsed, toLocKey } from '../../base/schema.ts';
import { type TlsSettings, readTls } from './connection-tls.ts';
import type { Connection } from './database.ts';
import { RUNTIME } from './roles.ts';

export type Connections = {
  /** As the role that the platform has at run time. */
  readonly connection: Connection;
  /** As the owner of the tables, for migrations. */
  readonly ownerConnection: Connection;
};

/** A URL and the variable that it comes from. */
export type NamedUrl = { readonly name: string; readonly value: string };

/** Without `ownerUrl` one user is both, and drops the privileges of the owner at run time. */
export function parseConnections(url: NamedUrl, ownerUrl: NamedUrl = url): Parsed<Connections> {
  const runtime = parseDatabaseUrl(url);
  const owner = ownerUrl === url ? runtime : parseDatabaseUrl(ownerUrl);
  if (runtime.ok && owner.ok)
    return { ok: true, value: { connection: asRuntime(runtime.value), ownerConnection: owner.value } };
  const issues = [...new Set([runtime, owner])].flatMap((one) => (one.ok ? [] : one.issues));
  return { ok: false, issues };
}

// Set while connecting, so that RESET ROLE returns to it too: a bug cannot exceed the privileges of the role.
function asRuntime(connection: Connection): Connection {
  if (connection.user === RUNTIME) return connection;
  return { ...connection, options: `${connection.options ?? ''} -c role=${RUNTIME}`.trim() };
}

export function parseDatabaseUrl({ name, value }: NamedUrl): Parsed<Connection> {
  const connection = toConnection(value);
  if (typeof connection !== 'string') return { ok: true, value: connection };
  return { ok: false, issues: [{ loc: [name], msg: connection, type: 'value_error' }] };
}

const EXAMPLE = 'postgresql://user:password@host:5432/database?sslmode=verify-full';
const TLS: readonly string[] = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'channel_binding'],
];
const PARAMETERS: readonly string[] = [
  ...['host', 'port', 'user', 'password', 'dbname', ...TLS],
  ...['application_name', 'connect_timeout', 'options', 'target_session_attrs'],
];

/** A string says what is wrong with the URL. */
function toConnection(value: string): Connection | string {
  const url = readUrl(value);
  if (url === undefined) return `must have the form ${EXAMPLE}, with special characters percent-encoded`;
  const { settings, tls } = url;
  const unknown = [...Object.keys(settings), ...Object.keys(tls)].find((key) => !PARAMETERS.includes(key));
  if (unknown !== undefined)
    return `has the unknown parameter ${toLocKey(unknown)}; the known ones are ${PARAMETERS.join(', ')}`;
  const missing = ['host', 'user', 'dbname'].find((key) => !settings[key]);
  if (missing !== undefined) return `must contain a ${missing}`;
  const { host = '', port = '5432', user = '', password = '', dbname: database = '' } = settings;
  if (host.includes(',')) return 'must contain one host';
  if (!(Number(port) >= 1 && Number(port) <= 65_535)) return 'must contain a port from 1 to 65535';
  const further = readSettings(settings);
  if (typeof further === 'string') return further;
  const secured = readTls(host, tls);
  if (typeof secured === 'string') return secured;
  return { host, port: Number(port), user, password, database, ...secured, ...further };
}

type Settings = Readonly<Record<string, string>>;

/**
 * The parts of the URL under libpq's names, parameters over the rest; undefined for what is no URL. The settings of TLS are
 * kept from the package, which would read them more loosely than `readTls`.
 */
function readUrl(value: string): { readonly settings: Settings; readonly tls: TlsSettings } | undefined {
  // The package takes an invalid percent-encoding for a text that is not encoded.
  if (!/^postgres(?:ql)?:\/\//.test(value) || /%(?![0-9a-f]{2})/i.test(value)) return undefined;
  const [, address = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(value) ?? [];
  const parameters = [...new URLSearchParams(query)];
  const others = new URLSearchParams(parameters.filter(([name]) => !TLS.includes(name)));
  try {
    const { database, ...parsed } = parse(`${address}?${others}`);
    const given = Object.entries({ dbname: database, ...parsed }).filter(([, part]) => Boolean(part));
    return {
      settings: Object.fromEntries(given.map(([name, part]) => [name, String(part)])),
      tls: Object.fromEntries(parameters.filter(([name]) => TLS.includes(name))),
    };
  } catch {
    return undefined;
  }
}

/** What is sent to the server, or concerns its connection. */
function readSettings({ application_name, connect_timeout, ...settings }: Settings): Connection | string {
  const { options, target_session_attrs = 'any' } = settings;
  if (options !== undefined && !ROUTING.test(options))
    return 'has the unknown parameter options: it may hold endpoint=, project= or reference= of a provider';
  const seconds = Number(connect_timeout ?? 1);
  if (!(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60))
    return 'must set connect_timeout to 1 to 60 seconds';
  // A server that accepts no writes is noticed by the first of them.
  if (!['any', 'read-write', 'primary'].includes(target_session_attrs))
    return 'must set target_session_attrs to any, read-write or primary';
  return {
    ...(application_name === undefined ? {} : { application_name }),
    ...(connect_timeout === undefined ? {} : { connectionTimeoutMillis: seconds * 1000 }),
    ...(options === undefined ? {} : { options }),
  };
}

/** By which the proxies of Neon and Supabase choose the database: any other option could change the role. */
const ROUTING = /^(?:endpoint|project|reference)=[\w-]{1,63}$/;

// Parses DATABASE_URL, the address of an external PostgreSQL server. Issues name the variable and never its value,
// which contains a password.
import { readFileSync } from 'node:fs';
import { type Parsed, toLocKey } from '../../base/schema.ts';
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
  return connection.user === RUNTIME ? connection : { ...connection, options: `-c role=${RUNTIME}` };
}

export function parseDatabaseUrl({ name, value }: NamedUrl): Parsed<Connection> {
  const connection = toConnection(value);
  if (typeof connection !== 'string') return { ok: true, value: connection };
  return { ok: false, issues: [{ loc: [name], msg: connection, type: 'value_error' }] };
}

const EXAMPLE = 'postgresql://user:password@host:5432/database?sslmode=verify-full';
const PARAMETERS: readonly string[] = [
  ...['host', 'port', 'user', 'password', 'dbname', 'sslmode', 'sslrootcert', 'application_name'],
];

/** A string says what is wrong with the URL. */
function toConnection(value: string): Connection | string {
  const url = /^postgres(ql)?:\/\//.test(value) ? URL.parse(value) : null;
  const parts = url === null ? undefined : partsOf(url);
  if (parts === undefined) return `must have the form ${EXAMPLE}, with special characters percent-encoded`;
  const unknown = Object.keys(parts).find((key) => !PARAMETERS.includes(key));
  if (unknown !== undefined)
    return `has the unknown parameter ${toLocKey(unknown)}; the known ones are ${PARAMETERS.join(', ')}`;
  const missing = ['host', 'user', 'dbname'].find((key) => !parts[key]);
  if (missing !== undefined) return `must contain a ${missing}`;
  const { host = '', port = '5432', user = '', password = '', dbname: database = '' } = parts;
  if (!(Number(port) >= 1 && Number(port) <= 65_535)) return 'must contain a port from 1 to 65535';
  const { sslmode, sslrootcert, application_name } = parts;
  const ssl = sslOf(host, sslmode, sslrootcert);
  if (typeof ssl === 'string') return ssl;
  const application = application_name === undefined ? {} : { application_name };
  return { host, port: Number(port), user, password, database, ssl, ...application };
}

/** The parts under libpq's names, with query parameters over the rest; undefined for an invalid percent-encoding. */
function partsOf(url: URL): Readonly<Record<string, string>> | undefined {
  try {
    const written = [
      ['host', decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, '$1')],
      ['port', url.port],
      ['user', decodeURIComponent(url.username)],
      ['password', decodeURIComponent(url.password)],
      ['dbname', decodeURIComponent(url.pathname.slice(1))],
    ] as const;
    return Object.fromEntries([...written.filter(([, part]) => part !== ''), ...url.searchParams]);
  } catch {
    return undefined;
  }
}

/**
 * The meaning that libpq gives to the mode: `require` encrypts without authenticating the server, unless a root
 * certificate is named. A server on another machine requires a mode: with libpq's own default, passwords and keys would
 * be sent in plaintext to a server that does not offer encryption.
 */
function sslOf(
  host: string,
  mode: string | undefined,
  rootFile: string | undefined,
): Connection['ssl'] | string {
  const isLocal = host.startsWith('/') || host === 'localhost' || host === '::1' || host.startsWith('127.');
  const root = rootFile === undefined ? {} : readRoot(rootFile);
  if (typeof root === 'string') return root;
  const anyName = { ...root, checkServerIdentity: () => undefined };
  switch (mode) {
    case undefined:
      return isLocal ? false : 'must set sslmode to verify-full, verify-ca, require or disable';
    case 'disable':
      return false;
    case 'require':
      return rootFile === undefined ? { rejectUnauthorized: false } : anyName;
    case 'verify-ca':
      return anyName;
    case 'verify-full':
      return root;
    default:
      return 'must set sslmode to one of verify-full, verify-ca, require, disable';
  }
}

function readRoot(file: string): { readonly ca: string } | string {
  try {
    return { ca: readFileSync(file, 'utf8') };
  } catch {
    return 'must name a readable file as sslrootcert';
  }
}

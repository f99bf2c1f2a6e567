// DATABASE_URL: a PostgreSQL server of one's own. A fault is told by the name of the variable and never by its value,
// which holds a password.
import { readFileSync } from 'node:fs';
import { type Parsed, toLocKey } from '../../base/schema.ts';
import type { Connection } from './database.ts';
import { RUNTIME } from './roles.ts';

export type Connections = {
  /** Of the platform at run time. */
  readonly connection: Connection;
  /** Of migrations. */
  readonly ownerConnection: Connection;
};

/** A URL and the variable that it comes from. */
export type NamedUrl = { readonly name: string; readonly value: string };

/** Without `ownerUrl` one user is both, and at run time gives up what the owner may. */
export function parseConnections(input: {
  readonly url: NamedUrl;
  readonly ownerUrl?: NamedUrl | undefined;
}): Parsed<Connections> {
  const own = parseDatabaseUrl(input.url);
  const owner = input.ownerUrl === undefined ? own : parseDatabaseUrl(input.ownerUrl);
  if (own.ok && owner.ok)
    return { ok: true, value: { connection: asRuntime(own.value), ownerConnection: owner.value } };
  const issues = own.ok ? [] : [...own.issues];
  if (!owner.ok && owner !== own) issues.push(...owner.issues);
  return { ok: false, issues };
}

// Set on connecting, so that a RESET ROLE ends there too: a bug cannot do what the role may not.
function asRuntime(connection: Connection): Connection {
  return connection.user === RUNTIME ? connection : { ...connection, options: `-c role=${RUNTIME}` };
}

const EXAMPLE = 'postgresql://user:password@host:5432/database?sslmode=verify-full';
const PARAMETERS: readonly string[] = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'application_name',
];

export function parseDatabaseUrl({ name, value }: NamedUrl): Parsed<Connection> {
  const fail = (msg: string): Parsed<Connection> => ({
    ok: false,
    issues: [{ loc: [name], msg, type: 'value_error' }],
  });
  const url = /^postgres(ql)?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : undefined;
  const parts = url && partsOf(url);
  if (parts === undefined) return fail(`Input should be like ${EXAMPLE}, special characters percent-encoded`);
  const unknown = [...parts.keys()].find((key) => !PARAMETERS.includes(key));
  if (unknown !== undefined)
    return fail(`Parameter ${toLocKey(unknown)} is not known: ${PARAMETERS.join(', ')}`);
  const host = parts.get('host') ?? '';
  const port = Number(parts.get('port') ?? '5432');
  const missing = ['host', 'user', 'dbname'].find((key) => !parts.get(key));
  if (missing !== undefined) return fail(`Input should name a ${missing}`);
  if (!(port >= 1 && port <= 65_535)) return fail('Input should name a port from 1 to 65535');
  const ssl = sslOf(host, parts.get('sslmode'), parts.get('sslrootcert'));
  if (typeof ssl === 'string') return fail(ssl);
  return {
    ok: true,
    value: {
      host,
      port,
      user: parts.get('user') ?? '',
      password: parts.get('password') ?? '',
      database: parts.get('dbname') ?? '',
      ssl,
      ...(parts.has('application_name') ? { application_name: parts.get('application_name') } : {}),
    },
  };
}

/** The URL's parts as libpq names them, parameters over the rest; undefined where an escape is none. */
function partsOf(url: URL): ReadonlyMap<string, string> | undefined {
  try {
    const written = [
      ['host', decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, '$1')],
      ['port', url.port],
      ['user', decodeURIComponent(url.username)],
      ['password', decodeURIComponent(url.password)],
      ['dbname', decodeURIComponent(url.pathname.slice(1))],
    ] as const;
    return new Map([...written.filter(([, part]) => part !== ''), ...url.searchParams]);
  } catch {
    return undefined;
  }
}

/**
 * What the mode means to libpq: `require` encrypts without asking who the server is, unless a root is named. To a server
 * on another machine a mode must be named: libpq's own default would send passwords and keys in clear where it cannot encrypt.
 */
function sslOf(
  host: string,
  mode: string | undefined,
  rootFile: string | undefined,
): Connection['ssl'] | string {
  const isNear = host.startsWith('/') || host === 'localhost' || host === '::1' || host.startsWith('127.');
  const root = rootFile === undefined ? {} : readRoot(rootFile);
  if (typeof root === 'string') return root;
  switch (mode) {
    case undefined:
      return isNear ? false : 'Input should say sslmode=verify-full, verify-ca, require or disable';
    case 'disable':
      return false;
    case 'require':
      return rootFile === undefined
        ? { rejectUnauthorized: false }
        : { ...root, checkServerIdentity: () => undefined };
    case 'verify-ca':
      return { ...root, checkServerIdentity: () => undefined };
    case 'verify-full':
      return root;
    default:
      return 'Parameter sslmode should be verify-full, verify-ca, require or disable';
  }
}

function readRoot(file: string): { readonly ca: string } | string {
  try {
    return { ca: readFileSync(file, 'utf8') };
  } catch {
    return 'Parameter sslrootcert should name a readable file';
  }
}

import { describe, expect, it } from 'vitest';
import { parseConnections, parseDatabaseUrl } from '../../../src/platform/store/connection.ts';

const parse = (value: string): unknown => parseDatabaseUrl({ name: 'DATABASE_URL', value });
const connected = (value: string): unknown => {
  const parsed = parseDatabaseUrl({ name: 'DATABASE_URL', value });
  return parsed.ok ? parsed.value : parsed.issues;
};

describe('DATABASE_URL', () => {
  it('names server, user and database, percent-encoded', () => {
    expect(connected('postgresql://a%40b:p%2Fw@db.example:6432/plat%20form?sslmode=verify-full')).toEqual({
      host: 'db.example',
      port: 6432,
      user: 'a@b',
      password: 'p/w',
      database: 'plat form',
      ssl: {},
    });
  });

  it('may name a socket directory in its parameters', () => {
    expect(connected('postgres:///platform?host=/run/postgresql&user=me')).toMatchObject({
      host: '/run/postgresql',
      port: 5432,
      user: 'me',
      ssl: false,
    });
  });

  it.each([
    ['disable', false],
    ['require', { rejectUnauthorized: false }],
    ['verify-ca', { checkServerIdentity: expect.any(Function) }],
    ['verify-full', {}],
  ])('gives sslmode=%s the meaning that it has in libpq', (mode, ssl) => {
    expect(connected(`postgresql://u:p@db.example/d?sslmode=${mode}`)).toMatchObject({ ssl });
  });

  it('does not require TLS on this machine', () => {
    expect(connected('postgresql://u:p@127.0.0.1/d')).toMatchObject({ ssl: false });
    expect(connected('postgresql://u:p@[::1]/d')).toMatchObject({ ssl: false, host: '::1' });
    // A name that begins like an address of this machine.
    expect(connected('postgresql://u:p@127.0.0.1.example/d')).toMatchObject([
      { msg: expect.stringContaining('must set sslmode') },
    ]);
  });

  it.each([
    [
      'Neon',
      'postgresql://neondb_owner:npg_x@ep-cool-name-a1b2-pooler.eu-central-1.aws.neon.tech/neondb?sslmode=require&channel_binding=require',
      {
        host: 'ep-cool-name-a1b2-pooler.eu-central-1.aws.neon.tech',
        ...{ port: 5432, user: 'neondb_owner', password: 'npg_x', database: 'neondb' },
        ...{ ssl: { rejectUnauthorized: false }, enableChannelBinding: true },
      },
    ],
    [
      'Neon, for clients without SNI',
      'postgres://u:p@ep-a.neon.tech/neondb?sslmode=verify-full&sslrootcert=system&options=endpoint%3Dep-a-123',
      { ssl: {}, options: 'endpoint=ep-a-123' },
    ],
    [
      'the pooler of Supabase',
      'postgresql://postgres.abcdefgh:p%40ss@aws-0-eu-central-1.pooler.supabase.com:6543/postgres?sslmode=require&options=reference%3Dabcdefgh',
      { port: 6543, user: 'postgres.abcdefgh', password: 'p@ss', options: 'reference=abcdefgh' },
    ],
    [
      'RDS',
      `postgres://u:p@db.x.rds.amazonaws.com:5432/d?sslmode=verify-full&sslrootcert=${import.meta.filename}&connect_timeout=5&target_session_attrs=read-write`,
      { ssl: { ca: expect.stringContaining('RDS') }, connectionTimeoutMillis: 5000 },
    ],
    [
      'a server that asks for a client certificate',
      `postgres://u:p@db/d?sslmode=require&sslcert=${import.meta.filename}&sslkey=${import.meta.filename}&sslnegotiation=direct`,
      {
        ssl: { cert: expect.any(String), key: expect.any(String), rejectUnauthorized: false },
        sslnegotiation: 'direct',
      },
    ],
    [
      'a socket',
      'postgresql://u:p@/d?host=/run/postgresql&application_name=a%20b',
      { application_name: 'a b' },
    ],
    ['a socket in place of a host', 'postgresql://u@%2Frun%2Fpostgresql/d', { host: '/run/postgresql' }],
  ])('may be that of %s', (_, value, expected) => expect(connected(value)).toMatchObject(expected));

  it.each([
    ['a single word', 'hunter2', /must have the form/],
    ['another scheme', 'mysql://u:hunter2@h/d', /must have the form/],
    ['an invalid percent-encoding', 'postgresql://u:hunter2%zz@h/d?sslmode=disable', /must have the form/],
    ['no user', 'postgresql://h/hunter2?sslmode=disable', /contain a user/],
    ['no database', 'postgresql://u:hunter2@h?sslmode=disable', /contain a dbname/],
    ['no sslmode for another machine', 'postgresql://u:hunter2@db.example/d', /sslmode/],
    [
      'an sslmode that falls back to plaintext',
      'postgresql://u:hunter2@h/d?sslmode=prefer',
      /must set sslmode to one of/,
    ],
    ['an unknown parameter', 'postgresql://u:hunter2@h/d?options=-c%20role', /unknown parameter options/],
    ['a search path', 'postgresql://u:hunter2@localhost/d?options=endpoint%3Da%20-c%20role%3Db', /options/],
    ['two hosts', 'postgresql://u:hunter2@a,b/d?sslmode=require', /one host/],
    ['a password that ends its host', 'postgresql://u:hunter2#@localhost/d', /must have the form/],
    [
      'channel binding without TLS',
      'postgresql://u:hunter2@localhost/d?channel_binding=require',
      /sslmode with TLS/,
    ],
    [
      'roots of the system without a name that they prove',
      'postgresql://u:hunter2@h/d?sslmode=require&sslrootcert=system',
      /verify-full/,
    ],
    [
      'a weaker meaning',
      'postgresql://u:hunter2@h/d?sslmode=require&uselibpqcompat=true',
      /unknown parameter/,
    ],
    ['TLS of another name', 'postgresql://u:hunter2@localhost/d?ssl=false', /unknown parameter ssl/],
    ['a replica', 'postgresql://u:hunter2@localhost/d?target_session_attrs=standby', /target_session_attrs/],
    ['a time out of range', 'postgresql://u:hunter2@localhost/d?connect_timeout=0', /1 to 60 seconds/],
    [
      'a client certificate that does not exist',
      'postgresql://u:hunter2@h/d?sslmode=require&sslcert=/no',
      /readable file as sslcert/,
    ],
    ['a port out of range', 'postgresql://u:hunter2@localhost/d?port=70000', /port from 1 to 65535/],
    [
      'a root certificate that does not exist',
      'postgresql://u:hunter2@h/d?sslmode=verify-ca&sslrootcert=/no',
      /readable/,
    ],
  ])('is rejected without being quoted: %s', (_, value, message) => {
    const parsed = parse(value);
    expect(parsed).toMatchObject({
      ok: false,
      issues: [{ loc: ['DATABASE_URL'], msg: expect.stringMatching(message) }],
    });
    expect(JSON.stringify(parsed)).not.toContain('hunter2');
  });
});

describe('the role of the platform', () => {
  const url = { name: 'DATABASE_URL', value: 'postgresql://app:one@localhost/d' };
  const ownerUrl = { name: 'OWNER_URL', value: 'postgresql://owner:two@localhost/d' };

  it('is the runtime role, even when there is only one user', () => {
    const parsed = parseConnections(url);
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        connection: { user: 'app', options: '-c role=sallyport_app' },
        ownerConnection: { user: 'app' },
      },
    });
    expect(parsed.ok && parsed.value.ownerConnection.options).toBeUndefined();
  });

  it('is added to the options of the URL', () => {
    const parsed = parseConnections({ ...url, value: `${url.value}?options=endpoint%3Da` });
    expect(parsed).toMatchObject({
      value: {
        connection: { options: 'endpoint=a -c role=sallyport_app' },
        ownerConnection: { options: 'endpoint=a' },
      },
    });
  });

  it('differs from the owner when the owner has a URL of its own', () => {
    expect(parseConnections(url, ownerUrl)).toMatchObject({
      value: { connection: { user: 'app' }, ownerConnection: { user: 'owner' } },
    });
  });

  it('reports the issues of both URLs, each under its variable', () => {
    const parsed = parseConnections({ ...url, value: 'x' }, { ...ownerUrl, value: 'y' });
    expect(!parsed.ok && parsed.issues.map(({ loc }) => loc)).toEqual([['DATABASE_URL'], ['OWNER_URL']]);
  });
});

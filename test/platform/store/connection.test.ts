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
  });

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

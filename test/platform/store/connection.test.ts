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

  it('names a directory of sockets by its parameters', () => {
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
  ])('means by sslmode=%s what libpq means', (mode, ssl) => {
    expect(connected(`postgresql://u:p@db.example/d?sslmode=${mode}`)).toMatchObject({ ssl });
  });

  it('needs no TLS to this machine', () => {
    expect(connected('postgresql://u:p@127.0.0.1/d')).toMatchObject({ ssl: false });
    expect(connected('postgresql://u:p@[::1]/d')).toMatchObject({ ssl: false, host: '::1' });
  });

  it.each([
    ['a word', 'hunter2', /should be like/],
    ['another scheme', 'mysql://u:hunter2@h/d', /should be like/],
    ['an escape that is none', 'postgresql://u:hunter2%zz@h/d?sslmode=disable', /should be like/],
    ['no user', 'postgresql://h/hunter2?sslmode=disable', /name a user/],
    ['no database', 'postgresql://u:hunter2@h?sslmode=disable', /name a dbname/],
    ['no word on TLS to another machine', 'postgresql://u:hunter2@db.example/d', /sslmode/],
    ['a mode that cannot be kept', 'postgresql://u:hunter2@h/d?sslmode=prefer', /sslmode should be/],
    ['a parameter that is not known', 'postgresql://u:hunter2@h/d?options=-c%20role', /options is not known/],
    ['a port out of range', 'postgresql://u:hunter2@localhost/d?port=70000', /port from 1 to 65535/],
    ['a root that is not there', 'postgresql://u:hunter2@h/d?sslmode=verify-ca&sslrootcert=/no', /readable/],
  ])('is refused without being quoted: %s', (_, value, message) => {
    const parsed = parse(value);
    expect(parsed).toMatchObject({
      ok: false,
      issues: [{ loc: ['DATABASE_URL'], msg: expect.stringMatching(message) }],
    });
    expect(JSON.stringify(parsed)).not.toContain('hunter2');
  });
});

describe('who works on it', () => {
  const url = { name: 'DATABASE_URL', value: 'postgresql://app:one@localhost/d' };
  const ownerUrl = { name: 'OWNER_URL', value: 'postgresql://owner:two@localhost/d' };

  it('is the runtime role, also where one user is all', () => {
    const parsed = parseConnections({ url });
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        connection: { user: 'app', options: '-c role=sallyport_app' },
        ownerConnection: { user: 'app' },
      },
    });
    expect(parsed.ok && parsed.value.ownerConnection.options).toBeUndefined();
  });

  it('is another than the owner, where that has a URL', () => {
    expect(parseConnections({ url, ownerUrl })).toMatchObject({
      value: { connection: { user: 'app' }, ownerConnection: { user: 'owner' } },
    });
  });

  it('is told of the faults of both, each by its variable', () => {
    const parsed = parseConnections({ url: { ...url, value: 'x' }, ownerUrl: { ...ownerUrl, value: 'y' } });
    expect(!parsed.ok && parsed.issues.map(({ loc }) => loc)).toEqual([['DATABASE_URL'], ['OWNER_URL']]);
  });
});

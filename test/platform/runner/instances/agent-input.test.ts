// What an agent server is given on its descriptor.
import { expect, it } from 'vitest';
import { Secret } from '../../../../src/base/secret.ts';
import { formatAgentInput } from '../../../../src/platform/runner/instances/agent-input.ts';
import { parseDatabaseUrl } from '../../../../src/platform/store/connection.ts';

it('has the values of its secrets, and a database URL that is read as it was meant', () => {
  const secrets = {
    variables: new Map([
      ['KEY', new Secret('a"b')],
      ['__proto__', new Secret('c')],
    ]),
    masterKey: new Secret('master'),
    database: { directory: '/run/a b', name: 'd_1', user: 'r_1', password: new Secret('+/=?&%') },
    gatewayToken: new Secret('token'),
  };
  const identity = { id: 'd', name: 'n', revisionId: 'r', access: 'gateway', mountPrefix: '/d/d' } as const;
  const input = JSON.parse(formatAgentInput(secrets, identity));
  expect(Object.entries(input.variables)).toEqual([
    ['KEY', 'a"b'],
    ['__proto__', 'c'],
  ]);
  expect(input).toMatchObject({ masterKey: 'master', deployment: { ...identity, gatewayToken: 'token' } });
  expect(parseDatabaseUrl({ name: 'DATABASE_URL', value: input.databaseUrl })).toMatchObject({
    ok: true,
    value: { host: '/run/a b', database: 'd_1', user: 'r_1', password: '+/=?&%' },
  });
});

import { describe, expect, it } from 'vitest';
import { anyone } from '../../../../src/platform/api/access.ts';
import { mount, pathsOf } from '../../../../src/platform/api/contract/mount.ts';
import { defaultLimits } from '../../../../src/platform/api/limits.ts';
import { createApi } from '../../../../src/platform/api/pipeline.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { createPlatformApi } from '../../../support/platform-api.ts';
import { onePool } from '../../../support/platform-database.ts';

const route: Route = defineRoute({
  method: 'GET',
  path: '/a/{id}',
  tag: 'Test',
  summary: 'a route',
  access: anyone,
  tracking: { untracked: 'a test' },
  responses: { 204: null },
  handle: async () => undefined,
});

const pathsUnder = (...under: [string, ...string[]]): readonly string[] =>
  mount([route], { under }).flatMap(pathsOf);

describe('routes that are mounted', () => {
  it('have a path under each prefix, the first of them first', () => {
    expect(pathsUnder('', '/api-host')).toEqual(['/a/{id}', '/api-host/a/{id}']);
    expect(pathsUnder('/api')).toEqual(['/api/a/{id}']);
  });

  it('twice have a path for each pair of prefixes', () => {
    const twice = mount(mount([route], { under: ['', '/api'] }), { under: ['/v2', '/host'] });
    expect(twice.flatMap(pathsOf)).toEqual([
      '/v2/a/{id}',
      '/v2/api/a/{id}',
      '/host/a/{id}',
      '/host/api/a/{id}',
    ]);
  });

  it('on a path that another route has are a bug', async () => {
    await using api = await createPlatformApi();
    const pools = onePool(api.database.store);
    const scope = { pools, authenticator: api.authenticator, limits: defaultLimits, log: undefined as never };
    const both = [...mount([route], { under: ['', '/api'] }), { ...route, path: '/api/a/{id}' }];
    expect(() => createApi(both, scope)).toThrow('two routes for GET /api/a/{id}');
  });
});

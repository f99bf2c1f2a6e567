// Pages of other origins: what a browser asks before a call, and what it lets the page read of the response.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyone, inWorkspace } from '../../../../src/platform/api/access.ts';
import type { Cors } from '../../../../src/platform/api/contract/cors.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';

const open = (path: string, cors: Cors): Route =>
  defineRoute({
    method: 'POST',
    path,
    tag: 'Test',
    summary: 'a route for pages',
    access: anyone,
    tracking: { untracked: 'a test' },
    responses: { 204: null },
    cors,
    handle: async () => undefined,
  });
const closed: Route = defineRoute({
  method: 'POST',
  path: '/closed',
  tag: 'Test',
  summary: 'a route with access',
  access: inWorkspace('deployments:create'),
  tracking: { untracked: 'a test' },
  responses: { 204: null },
  cors: { origins: ['*'], exposed: ['Content-Location'] },
  handle: async () => undefined,
});
const routes = [open('/any', { origins: ['*'] }), open('/one', { origins: ['https://app.example'] }), closed];

let api: PlatformApi;
beforeAll(async () => {
  api = await createPlatformApi({ routes });
});
afterAll(() => api[Symbol.asyncDispose]());

const call = (path: string, origin?: string): Promise<Asked> =>
  api.ask('POST', path, { headers: { ...(origin === undefined ? {} : { origin }) } });
const ask = (path: string, origin: string, fields: Readonly<Record<string, string>> = {}): Promise<Asked> =>
  api.ask('OPTIONS', path, { headers: { origin, 'access-control-request-method': 'POST', ...fields } });

const cors = ({ headers }: Asked): unknown =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control') || name === 'vary'));

describe('a response', () => {
  it('may be read by the pages of the origins of its route', async () => {
    expect(cors(await call('/any', 'https://any.example'))).toEqual({
      vary: 'Origin',
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'X-Request-Id, Retry-After',
    });
    expect(cors(await call('/one', 'https://app.example'))).toMatchObject({
      'access-control-allow-origin': 'https://app.example',
    });
    for (const origin of ['https://app.example.evil', 'null', 'http://app.example'])
      expect(cors(await call('/one', origin))).toEqual({ vary: 'Origin' });
    expect(cors(await call('/one'))).toEqual({ vary: 'Origin' });
  });

  it('that is an error may be read too: a page can say what is wrong', async () => {
    const rejected = await call('/closed', 'https://app.example');
    expect([rejected.status, cors(rejected)]).toEqual([
      401,
      {
        vary: 'Origin',
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'X-Request-Id, Retry-After, Content-Location',
      },
    ]);
  });

  it('of a route that asks for no CORS has none of its fields', async () => {
    const { headers } = await api.ask('GET', '/info', { headers: { origin: 'https://app.example' } });
    expect([...headers.keys()].filter((name) => /access-control|vary/.test(name))).toEqual([]);
  });
});

describe('a preflight', () => {
  it('allows the method and the fields that the page will send, and no cookies', async () => {
    const allowed = await ask('/one', 'https://app.example', {
      'access-control-request-headers': 'x-api-key, content-type',
    });
    expect([allowed.status, cors(allowed)]).toEqual([
      204,
      {
        vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
        'access-control-allow-origin': 'https://app.example',
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers': 'x-api-key, content-type',
        'access-control-max-age': '600',
      },
    ]);
    expect(allowed.headers.has('access-control-allow-credentials')).toBe(false);
  });

  it.each([
    ['of another origin', '/one', 'https://other.example', {}],
    ['for another method', '/one', 'https://app.example', { 'access-control-request-method': 'DELETE' }],
    ['for a route without CORS', '/info', 'https://app.example', { 'access-control-request-method': 'GET' }],
  ])('%s is the 405 of every other OPTIONS', async (_, path, origin, fields) => {
    const refused = await ask(path, origin, fields);
    expect([refused.status, cors(refused)]).toEqual([405, {}]);
    expect(refused.headers.get('allow')).toMatch(/POST|GET/);
  });

  it('with fields that are no names allows none of them', async () => {
    const { headers } = await ask('/any', 'https://a', { 'access-control-request-headers': 'a b\tc' });
    expect(headers.has('access-control-allow-headers')).toBe(false);
  });
});

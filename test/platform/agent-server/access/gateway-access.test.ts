// Requests at an instance of a deployment: its gateway says who calls, its runner asks what nobody else may, and code of the deployment
// sees neither field.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Auth } from '@langchain/langgraph-sdk/auth';
import { Secret } from '../../../../src/base/secret.ts';
import { z } from '../../../../src/base/schema.ts';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { createControlAccess } from '../../../../src/platform/agent-server/access/control-access.ts';
import type { Gate } from '../../../../src/platform/agent-server/access/gate.ts';
import { createGatewayCallers } from '../../../../src/platform/agent-server/access/gateway-callers.ts';
import { requestFields } from '../../../../src/platform/agent-server/app/relayed-fields.ts';
import { createControlRoutes } from '../../../../src/platform/agent-server/system/control-routes.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { createTestGate, handlerGate } from '../../../support/agent-gate.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';

const TOKEN = 'the-token-of-the-gateway';
const GATEWAY = { 'x-sallyport-gateway-token': TOKEN };
const ADA = { ...GATEWAY, 'x-sallyport-caller': 'ada', 'x-sallyport-caller-key': 'key-of-ada' };
const RUNNER = { 'x-sallyport-control-token': TOKEN };
const STUDIO = { 'x-auth-scheme': 'langsmith' };

let api: PlatformApi;
const seen: string[] = [];
const queue = { isStopped: false, running: 3, stop: () => void (queue.isStopped = true) };
const streams = { isRetired: false, retire: () => void (streams.isRetired = true) };

function routeOf(path: string, { access }: Gate): Route {
  return defineRoute({
    ...{ path, method: 'GET', tag: 'Test', summary: 'who was let in', tracking: { untracked: 'a test' } },
    access,
    responses: { 200: z.record(z.string(), z.unknown()) },
    handle: async ({ user, isStudio, headers }) => ({ body: { user: user ?? null, isStudio, headers } }),
  });
}

beforeAll(async () => {
  const callers = createGatewayCallers(new Secret(TOKEN));
  const auth = new Auth().authenticate((request: Request) => {
    seen.push(...request.headers.keys());
    return 'of the handler';
  });
  api = await createPlatformApi({
    routes: [
      routeOf('/gateway', createTestGate({ settings: { access: 'gateway', isStudio: false }, callers })),
      routeOf('/handler', handlerGate(auth, { callers })),
      routeOf('/no-studio', handlerGate(auth, { callers, disableStudio: true })),
      ...createControlRoutes({
        ...{ access: createControlAccess(callers), queue, streams },
        server: () => ({ running: 5, streams: 2 }),
      }),
    ],
  });
});
afterAll(() => api?.[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}): Promise<Asked> =>
  api.ask('GET', path, { headers });

describe('without a handler', () => {
  it('a caller whom the gateway names is let in as the owner, and no run sees the fields', async () => {
    const { status, body } = await get('/gateway', { ...ADA, 'x-team': 'one' });
    expect([status, body]).toMatchObject([
      200,
      { user: { identity: 'ada', is_authenticated: true }, isStudio: false, headers: { 'x-team': 'one' } },
    ]);
    expect(Object.keys(body.headers)).toEqual(['x-team']);
  });

  it.each<[string, Record<string, string>]>([
    ['nobody', {}],
    ['the gateway names nobody', GATEWAY],
    ['another token', { ...ADA, 'x-sallyport-gateway-token': `${TOKEN}x` }],
    ['the token of the runner', { ...ADA, ...RUNNER, 'x-sallyport-gateway-token': '' }],
    ['a name that is none', { ...ADA, 'x-sallyport-caller': 'a b' }],
    ['no key', { ...GATEWAY, 'x-sallyport-caller': 'ada' }],
    ['a key of the platform', { 'x-api-key': TOKEN, authorization: `Bearer ${TOKEN}` }],
  ])('%s is not let in', async (_, headers) => {
    expect((await get('/gateway', headers)).status).toBe(401);
  });
});

describe('with a handler', () => {
  it('the handler decides, and sees nothing of the gateway', async () => {
    seen.length = 0;
    expect((await get('/handler', { ...GATEWAY, 'x-api-key': 'own' })).body.user.identity).toBe(
      'of the handler',
    );
    expect(seen).toContain('x-api-key');
    expect(seen.filter((name) => name.startsWith('x-sallyport'))).toEqual([]);
  });

  it('the studio is let in where the gateway has checked its key, unless that is disabled', async () => {
    expect((await get('/handler', { ...STUDIO, ...ADA })).body).toMatchObject({ isStudio: true });
    expect((await get('/handler', { ...STUDIO, ...GATEWAY })).body).toMatchObject({ isStudio: false });
    expect((await get('/no-studio', { ...STUDIO, ...ADA })).body).toMatchObject({ isStudio: false });
  });
});

it('requests that an application gets have no field of the gateway', () => {
  const rawHeaders = Object.entries({ ...ADA, ...RUNNER, 'x-team': 'one' }).flat();
  expect(requestFields(readRequestHead({ rawHeaders }))).toEqual([['x-team', 'one']]);
});

describe('the runner', () => {
  it('sees what runs without its own request, also of the database', async () => {
    expect((await get('/internal/status?check_db=1', RUNNER)).body).toEqual({
      ...{ draining: false, requests: 4, streams: 2, runs: 3 },
    });
  });

  it('stops the claiming of runs', async () => {
    const { status, body } = await api.ask('POST', '/internal/drain', { headers: RUNNER });
    expect([status, body, queue.isStopped]).toEqual([202, { draining: true }, true]);
    expect(streams.isRetired).toBe(true);
    expect((await get('/internal/status', RUNNER)).body).toMatchObject({ draining: true });
  });

  it('is whoever has its field, which no caller has: to others there is no such path', async () => {
    queue.isStopped = false;
    streams.isRetired = false;
    for (const headers of [{}, ADA, { 'x-sallyport-control-token': 'x' }]) {
      expect((await get('/internal/status', headers)).status).toBe(404);
      expect((await api.ask('POST', '/internal/drain', { headers })).status).toBe(404);
    }
    expect([queue.isStopped, streams.isRetired]).toEqual([false, false]);
  });
});

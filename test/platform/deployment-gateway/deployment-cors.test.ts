// What pages of other origins see of the gateway's own responses: a browser shows those alone that a deployment allows.
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type {
  ServedDeployment,
  ServedRevision,
} from '../../../src/platform/deployment-gateway/target-table.ts';
import { createDeploymentScene, type DeploymentScene } from './gateway-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const PAGE = 'https://app.example.com';
const preflight = { Origin: PAGE, 'Access-Control-Request-Method': 'POST' };

function turn(deployment: ServedDeployment, given: Partial<ServedRevision> = {}): void {
  const revision = { id: crypto.randomUUID(), access: 'gateway', instances: [], ...given } as const;
  scene.gateway.targets.turn(deployment, revision);
}

async function ask(url: string, init: RequestInit & { readonly key?: string } = {}) {
  const response = await scene.fetch(url, { ...init, headers: { Origin: PAGE, ...init.headers } });
  const [status, headers] = [response.status, response.headers];
  await response.text();
  return {
    ...{ status, allowed: headers.get('access-control-allow-origin'), vary: headers.get('vary') },
    credentials: headers.get('access-control-allow-credentials'),
    exposed: headers.get('access-control-expose-headers') ?? '',
    headers,
  };
}

it('a refusal has the fields of the configuration of the deployment', async () => {
  const deployment = scene.deployment();
  const instance = await scene.addInstance();
  const cors = { origins: [PAGE], exposed: ['X-Own'], allowsCredentials: true };
  turn(deployment, { cors, instances: [instance] });
  const url = `${scene.gateway.addressOf(deployment)}/threads`;
  const refused = await ask(url, { key: '' });
  expect(refused).toMatchObject({ status: 401, allowed: PAGE, vary: 'Origin', credentials: 'true' });
  expect(refused.exposed.split(', ')).toEqual(
    expect.arrayContaining(['X-Own', 'Retry-After', 'X-Sallyport-Error']),
  );
  expect(await ask(url, { key: '', headers: { Origin: 'https://other.example.com' } })).toMatchObject({
    ...{ status: 401, allowed: null, vary: 'Origin' },
  });
  const viewer = await scene.api.addServiceKey(scene.organization, 'WORKSPACE_VIEWER', scene.workspace);
  expect(await ask(url, { key: viewer, method: 'POST' })).toMatchObject({ status: 403, allowed: PAGE });
  // Without an origin nothing is said of any.
  const { headers } = await scene.fetch(url, { key: '' });
  expect([headers.get('vary'), headers.get('access-control-allow-origin')]).toEqual([null, null]);
});

it('without a configuration every page may read it, also of a deployment that does not exist', async () => {
  const deployment = scene.deployment();
  await scene.serve(deployment);
  for (const id of [deployment.id, crypto.randomUUID()])
    expect(await ask(`${scene.gateway.url}/d/${id}/x`, { key: '' })).toMatchObject({
      ...{ status: 401, allowed: '*', credentials: null },
    });
  expect(await ask(`${scene.gateway.url}/d/${crypto.randomUUID()}/x`)).toMatchObject({
    ...{ status: 404, allowed: '*' },
  });
});

it('a response of the deployment keeps its own fields', async () => {
  const deployment = scene.deployment();
  const instance = await scene.addInstance((_, outgoing) => void outgoing.end('ok'));
  turn(deployment, { cors: { origins: [PAGE] }, instances: [instance] });
  expect(await ask(`${scene.gateway.addressOf(deployment)}/x`)).toMatchObject({ status: 200, allowed: null });
});

it('what the instance does not respond to is refused with them too', async () => {
  const deployment = scene.deployment();
  const instance = await scene.addInstance((incoming) => void incoming.socket.destroy());
  turn(deployment, { cors: { origins: [PAGE] }, instances: [instance] });
  const url = `${scene.gateway.addressOf(deployment)}/x`;
  expect(await ask(url)).toMatchObject({ status: 502, allowed: PAGE });
  await instance.end();
  expect(await ask(url)).toMatchObject({ status: 503, allowed: PAGE });
});

it('while nothing is ready a preflight is responded to, so that the page sees the 503 behind it', async () => {
  const deployment = scene.deployment();
  turn(deployment, { cors: { origins: [PAGE], methods: ['POST'], maxAgeSeconds: 5 } });
  const url = `${scene.gateway.addressOf(deployment)}/threads`;
  const headers = { ...preflight, 'Access-Control-Request-Headers': 'x-api-key, content-type' };
  const accepted = await ask(url, { method: 'OPTIONS', key: '', headers });
  expect(accepted).toMatchObject({ status: 200, allowed: PAGE });
  expect(Object.fromEntries(accepted.headers)).toMatchObject({
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'x-api-key, content-type',
    'access-control-max-age': '5',
  });
  expect(await ask(url, { method: 'POST' })).toMatchObject({ status: 503, allowed: PAGE });
  for (const wrong of [{ Origin: 'https://other.example.com' }, { 'Access-Control-Request-Method': 'PUT' }])
    expect(await ask(url, { method: 'OPTIONS', key: '', headers: { ...headers, ...wrong } })).toMatchObject({
      status: 503,
      allowed: null,
    });
});

it('two origins are none', async () => {
  const deployment = scene.deployment();
  turn(deployment, { cors: { origins: [PAGE] } });
  const { hostname, port } = new URL(scene.gateway.url);
  const socket = connect(Number(port), hostname);
  const head = `GET /d/${deployment.id}/x HTTP/1.1\r\nHost: a\r\nOrigin: ${PAGE}\r\nOrigin: ${PAGE}\r\n`;
  socket.write(`${head}Connection: close\r\n\r\n`);
  const response = await text(socket);
  expect(response).toMatch(/^HTTP\/1\.1 401 /);
  expect(response).not.toMatch(/access-control-allow-origin/i);
});

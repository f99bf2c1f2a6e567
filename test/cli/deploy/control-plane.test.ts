// What the command does when the network or the platform fails in the middle.
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ControlPlane } from '../../../src/cli/deploy/control-plane.ts';
import { Secret } from '../../../src/base/secret.ts';
import { FakeControlPlane } from '../../support/fake-control-plane.ts';

function connect(url: string): ControlPlane {
  const connection = { url: new URL(url), key: new Secret('key'), workspace: undefined };
  return new ControlPlane(connection, async () => undefined);
}

const CREATED = { secrets: new Map<string, Secret>(), proxyProfileId: undefined };

async function createOne(plane: FakeControlPlane) {
  const control = connect(plane.url);
  const { id } = await control.create('one', CREATED);
  plane.requests.length = 0;
  return { control, id };
}

const CHANGES = {
  ...{ configPath: 'langgraph.json', secrets: new Map<string, Secret>() },
  ...{ installCommand: undefined, buildCommand: undefined, proxyProfileId: undefined },
};

describe('a lost response', () => {
  it('of a read is asked for again', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/^GET/, 'lost before']);
    expect(await connect(plane.url).list()).toEqual([]);
    expect(plane.lines).toEqual(['GET /v2/deployments', 'GET /v2/deployments']);
  });

  it('of a created deployment is found by its name, and nothing is created twice', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/^POST/, 'lost after']);
    const { id } = await connect(plane.url).create('one', CREATED);
    expect(plane.deployments.map((one) => one.id)).toEqual([id]);
    expect(plane.lines).toEqual(['POST /v2/deployments', 'GET /v2/deployments']);
  });

  it('of a deployment that was not created leads to another try', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/^POST/, 'lost before']);
    await connect(plane.url).create('one', CREATED);
    expect(plane.deployments).toHaveLength(1);
    const [create, list] = ['POST /v2/deployments', 'GET /v2/deployments'];
    expect(plane.lines).toEqual([create, list, create]);
  });

  it.each(['lost before', 'lost after'] as const)('of an upload (%s) gets another address', async (what) => {
    await using plane = await FakeControlPlane.start();
    const { control, id } = await createOne(plane);
    plane.interferences.push([/^PUT/, what]);
    const stored = await control.upload(id, () => Readable.from([Buffer.from('abc')]), 3);
    expect(plane.lines.filter((line) => line.startsWith('PUT'))).toHaveLength(2);
    expect(plane.lines.filter((line) => line.includes('upload-url'))).toHaveLength(2);
    expect([String(plane.uploads.at(-1)), stored]).toEqual(['abc', expect.stringMatching(/^objects\//)]);
  });

  it('of a revision that was made is found by its upload, and none is made twice', async () => {
    await using plane = await FakeControlPlane.start();
    const { control, id } = await createOne(plane);
    plane.interferences.push([/^PATCH/, 'lost after']);
    const changed = await control.change(id, { ...CHANGES, objectPath: 'objects/a' });
    expect(plane.lines.filter((line) => line.startsWith('PATCH'))).toHaveLength(1);
    expect(changed.latest_revision_id).toBe(plane.revisions[0]?.id);
  });

  it('of a redeployment is found by the newest revision', async () => {
    await using plane = await FakeControlPlane.start();
    const { control, id } = await createOne(plane);
    const before = await control.get(id);
    plane.interferences.push([/redeploy$/, 'lost after']);
    const { latest_revision_id: latest } = await control.redeploy(before, plane.revisions[0]?.id ?? '');
    expect(latest).not.toBe(before.latest_revision_id);
    expect(plane.revisions).toHaveLength(2);
  });

  it('of a deletion is no error when the deployment is gone', async () => {
    await using plane = await FakeControlPlane.start();
    const { control, id } = await createOne(plane);
    plane.interferences.push([/^DELETE/, 'lost after']);
    await control.delete(id);
    expect(plane.lines).toEqual(['DELETE /v2/deployments/ID', 'GET /v2/deployments/ID']);
  });
});

describe('a response', () => {
  it('that no control plane gives names what is wrong with it', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/./, { status: 200, body: { resources: [{ name: 1 }] } }]);
    await expect(connect(plane.url).list()).rejects.toThrow(
      'GET /v2/deployments: the response is not that of a control plane (resources.0.id, resources.0.name)',
    );
  });

  it('that rejects something is not asked for again', async () => {
    await using plane = await FakeControlPlane.start();
    plane.interferences.push([/./, { status: 403, body: { detail: 'No \u001b[2J permission' } }]);
    const failed = connect(plane.url).create('one', CREATED);
    await expect(failed).rejects.toThrow(String.raw`POST /v2/deployments: 403: No \u001b[2J permission`);
    expect(plane.requests).toHaveLength(1);
  });

  it('that ends too early counts as lost', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"resources"'));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const control = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await expect(control.create('one', CREATED)).rejects.toThrow(/cannot be reached/);
    server.close();
  });
});

it.each([
  { detail: { error: 'NotFound', message: 'No target has this name' } },
  { detail: 'No target has this name' },
  { detail: 'There is no such path: the metrics are at /metrics, the readiness is at /ok' },
  { detail: 'There is no such path. See /openapi.json', code: 'no_route' },
])('a 404 of another listener names the option: %j', async (body) => {
  await using plane = await FakeControlPlane.start();
  plane.interferences.push([/^GET/, { status: 404, body }]);
  await expect(connect(plane.url).list()).rejects.toThrow(
    'GET /v2/deployments: 404, and not from a platform: check --host-url or SALLYPORT_API_URL',
  );
});

it('all pages of a list are read', async () => {
  await using plane = await FakeControlPlane.start();
  for (let n = 0; n < 101; n += 1)
    plane.deployments.push({ id: String(n), name: `name-${n}`, latest_revision_id: null });
  expect(await connect(plane.url).list()).toHaveLength(101);
  expect(plane.requests.map(({ query }) => query)).toEqual(['?limit=100&offset=0', '?limit=100&offset=100']);
});

it('a path of the URL comes before those of the API', async () => {
  await using plane = await FakeControlPlane.start();
  await connect(`${plane.url}/api-host/`)
    .list()
    .catch(() => undefined);
  expect(plane.lines[0]).toBe('GET /api-host/v2/deployments');
});

it('a signed address is not in the message when it cannot be reached', async () => {
  await using plane = await FakeControlPlane.start();
  const { control, id } = await createOne(plane);
  plane.uploadOrigin = 'http://127.0.0.1:1';
  const failed = control.upload(id, () => Readable.from(['x']), 1);
  await expect(failed).rejects.toThrow(/^http:\/\/127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)$/);
});

// Listeners in the network namespaces of sandboxes: who calls there is known by the listener, which lives as long as its sandbox.
// What must be rejected is in test/invariants/i8-namespaces.test.ts.
import { describe, expect, it } from 'vitest';
import { openNamespaceListener } from '../../../src/box-host/listeners/namespace-listener.ts';
import { BOX_LISTENER, type NamespaceScene, createNamespaceScene } from './namespace-scene.ts';
import { keyRules } from './sandbox-scene.ts';

const LOOPBACK = { egress: { allow_private: ['loopback'] } };
const PATH = '/v1/sandboxes';

async function idsOf(scene: NamespaceScene): Promise<readonly unknown[]> {
  const { body } = await scene.ask('GET', PATH);
  return (body['sandboxes'] as readonly { readonly id: string }[]).map(({ id }) => id);
}

describe('a client inside a namespace', () => {
  it('gets the header of its rule, and the record names its sandbox', async () => {
    await using scene = await createNamespaceScene({ config: LOOPBACK });
    const url = `https://api.test:${scene.origin.port}/v1/x`;
    const one = await scene.createBox('box-1', { proxy_config: keyRules('of-box-1') });
    const two = await scene.createBox('box-2', { proxy_config: keyRules('of-box-2') });
    for (const [box, id] of [
      [one, 'box-1'],
      [two, 'box-2'],
    ] as const) {
      expect(await box.curl('-o', '/dev/null', '-w', '%{http_code}', url)).toMatchObject({ stdout: '200' });
      expect(scene.origin.requests.at(-1)?.headers).toContainEqual(['X-Key', `of-${id}`]);
      expect(scene.sidecar.records().at(-1)).toMatchObject({ sandbox: id, outcome: 'injected' });
    }
    const shown = await scene.ask('GET', `${PATH}/box-1`);
    expect(shown.body).toMatchObject({ proxy: 'http://127.0.0.1:3128', has_token: false, revision: 1 });
  });

  it('is served whatever clients the operator allows on the addresses of the machine', async () => {
    await using scene = await createNamespaceScene({
      config: { ...LOOPBACK, allow_clients: ['192.0.2.0/24'] },
    });
    const box = await scene.createBox('box', { proxy_config: keyRules('x') });
    const got = await box.curl(
      '-w',
      '%{http_code}',
      '-o',
      '/dev/null',
      `https://api.test:${scene.origin.port}/`,
    );
    expect(got.stdout).toBe('200');
  });
});

describe('the life of a listener', () => {
  it('ends with its sandbox', async () => {
    await using scene = await createNamespaceScene();
    const box = await scene.createBox('box');
    const count = async (): Promise<number> =>
      (await box.space.run('cat', ['/proc/net/tcp'])).stdout.trim().split('\n').slice(1).length;
    expect(await count()).toBe(1);
    expect((await scene.ask('DELETE', `${PATH}/box`)).status).toBe(204);
    expect(await count()).toBe(0);
  });

  it('and its socket may serve the next sandbox', async () => {
    await using scene = await createNamespaceScene();
    const box = await scene.createBox('box');
    await scene.ask('DELETE', `${PATH}/box`);
    const reference = scene.handOver(
      (await openNamespaceListener(box.space, { ...BOX_LISTENER, port: 3129 })).handle,
      'next',
    );
    const made = await scene.ask('POST', PATH, { id: 'next', listen: { handed_over: reference } });
    expect(made).toMatchObject({ status: 201, body: { proxy: 'http://127.0.0.1:3129' } });
  });

  it('is not stored: a sidecar that starts again knows neither sandbox nor reference', async () => {
    await using scene = await createNamespaceScene();
    const box = await scene.createBox('box', { proxy_config: keyRules('x') });
    await scene.ask('PUT', `${PATH}/box/proxy_config`, keyRules('y'));
    const unused = scene.handOver((await scene.openBox()).listener.handle, 'other');
    await scene.restart();
    expect(await idsOf(scene)).toEqual(['default']);
    const again = await scene.ask('POST', PATH, { id: 'other', listen: { handed_over: unused } });
    expect(again).toMatchObject({ status: 403, body: { code: 'not_handed_over' } });
    // The socket of the parent is still open: it is handed over anew.
    const reference = scene.handOver((await scene.openBox()).listener.handle, 'box');
    expect((await scene.ask('POST', PATH, { id: 'box', listen: { handed_over: reference } })).status).toBe(
      201,
    );
    box.listener.close();
  });

  it('an invalid document leaves the reference unused', async () => {
    await using scene = await createNamespaceScene();
    const reference = scene.handOver((await scene.openBox()).listener.handle, 'box');
    const document = { id: 'box', listen: { handed_over: reference } };
    const rejected = await scene.ask('POST', PATH, { ...document, proxy_config: { rules: 1 } });
    expect(rejected.status).toBe(422);
    expect((await scene.ask('POST', PATH, document)).status).toBe(201);
  });
});

describe('what waits to be used', () => {
  it('is limited: the oldest is closed', async () => {
    await using scene = await createNamespaceScene();
    const first = scene.handOver((await scene.openBox()).listener.handle, 'box');
    for (let i = 0; i < 64; i++) scene.handOver(undefined, `other-${i}`);
    const refused = await scene.ask('POST', PATH, { id: 'box', listen: { handed_over: first } });
    expect(refused).toMatchObject({ status: 403, body: { code: 'not_handed_over' } });
  });

  it('is closed if its message is not understood', async () => {
    await using scene = await createNamespaceScene();
    const { listener, space } = await scene.openBox();
    scene.sidecar.sidecar.handOver({ type: 'something', reference: 'x' }, listener.handle);
    const { stdout } = await space.run('cat', ['/proc/net/tcp']);
    expect(stdout.trim().split('\n')).toHaveLength(1);
  });
});

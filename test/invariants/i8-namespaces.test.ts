// I8 in network namespaces: a client there reaches nothing but its listener, and through it nothing of the machine's loopback.
// A listener that was not handed over for this very use is rejected.
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type ListenOptions, type Server, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNamespaceListener } from '../../src/box-host/listeners/namespace-listener.ts';
import { createNamespaceScene, type NamespaceScene } from '../sidecar/sandboxes/namespace-scene.ts';
import { namespaceOf } from '../support/network-namespace.ts';
import { createScratch } from '../support/scratch.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

const LOOPBACK = { egress: { allow_private: ['loopback'] } };
const PATH = '/v1/sandboxes';

/** What `server.listen` works on; it accepts for the server of the test too. */
function handleOf(server: object): unknown {
  return Reflect.get(server, '_handle');
}

async function listening(server: Server, at: ListenOptions): Promise<Server> {
  server.listen(at);
  await once(server, 'listening');
  return server;
}

async function idsOf(scene: NamespaceScene): Promise<readonly unknown[]> {
  const { body } = await scene.ask('GET', PATH);
  return (body['sandboxes'] as readonly { readonly id: string }[]).map(({ id }) => id);
}

describe('I8 a client inside a namespace', () => {
  it('I8 reaches nothing else: no address of the machine, and none outside', async () => {
    await using scene = await createNamespaceScene({ config: LOOPBACK });
    const box = await scene.createBox('box');
    const direct = ['-sS', '--max-time', '20', '--noproxy', '*'];
    const authorities = [
      `127.0.0.1:${scene.origin.port}`,
      `127.0.0.1:${scene.sidecar.port}`,
      '192.0.2.1:80',
      '[2001:db8::1]:80',
    ];
    const urls = authorities.flatMap((authority) => ['-o', '/dev/null', `http://${authority}/`]);
    const tried = await box.space.run('curl', [...direct, '-w', '%{exitcode} ', ...urls]);
    // Could not connect.
    expect(tried.stdout.trim().split(' ')).toEqual(authorities.map(() => '7'));
    expect(scene.origin.requests).toEqual([]);
  });

  it('I8 does not reach the loopback of the machine through the proxy, as a client on it does through a sidecar without namespaces', async () => {
    await using scene = await createNamespaceScene();
    const box = await scene.createBox('box');
    const port = scene.origin.port;
    const names = ['127.0.0.1', '[::1]', 'localhost', 'any.test', '127.0.0.2'];
    // Also the listeners of the sidecar and ports that are open by default.
    const own = [`127.0.0.1:${scene.sidecar.port}`, '127.0.0.1:443', '127.0.0.1:3128'];
    const all = [...names.map((host) => `${host}:${port}`), ...own];
    const urls = all.flatMap((authority) => ['-o', '/dev/null', `https://${authority}/`]);
    const tried = await box.curl('-w', '%{http_connect} ', ...urls);
    expect(tried.stdout.trim().split(' ')).toEqual(all.map(() => '403'));
    await using plain = await createTestSidecar();
    await using client = await WireClient.connect(plain.port);
    expect((await client.openTunnel(`127.0.0.1:${port}`)).status).toBe(200);
  });
});

describe('I8 403 and no sandbox', () => {
  type Row = readonly [name: string, code: string, listen: (scene: NamespaceScene) => unknown];
  const rows: readonly Row[] = [
    ['an unknown reference', 'not_handed_over', () => ({ handed_over: 'A'.repeat(22) })],
    [
      'a reference that was used',
      'not_handed_over',
      async (scene) => {
        const handed_over = scene.handOver((await scene.openBox()).listener.handle, 'box');
        const made = await scene.ask('POST', PATH, { id: 'box', listen: { handed_over } });
        expect([made.status, (await scene.ask('DELETE', `${PATH}/box`)).status]).toEqual([201, 204]);
        return { handed_over };
      },
    ],
    [
      'the reference of another sandbox',
      'not_handed_over',
      async (scene) => ({ handed_over: scene.handOver((await scene.openBox()).listener.handle, 'other') }),
    ],
    [
      'a second listener under one reference',
      'listener_rejected',
      async (scene) => {
        const handed_over = scene.handOver(undefined, 'box');
        const { handle } = (await scene.openBox()).listener;
        scene.sidecar.sidecar.handOver({ type: 'listener', reference: handed_over, sandbox: 'box' }, handle);
        return { handed_over };
      },
    ],
    ['a path', 'not_handed_over', () => ({ path: '/proc/self/ns/net' })],
    ['a process id', 'not_handed_over', () => ({ pid: process.pid })],
    ['a descriptor number', 'not_handed_over', () => ({ fd: 3 })],
    ['a reference and a process id', 'not_handed_over', () => ({ handed_over: 'A'.repeat(22), pid: 1 })],
    ['a reference that is no text', 'not_handed_over', () => ({ handed_over: 1 })],
    [
      'a listener in the network namespace of the sidecar, as a reused process id would give',
      'listener_rejected',
      async (scene) => {
        // The holder of the namespace has ended, and its id now is that of a process of the machine.
        const child = spawn('cat');
        await once(child, 'spawn');
        using spaces = namespaceOf(child.pid ?? 0);
        const { handle } = await openNamespaceListener(spaces, { host: '127.0.0.1', port: 0 });
        child.kill('SIGKILL');
        return { handed_over: scene.handOver(handle, 'box') };
      },
    ],
    [
      'a socket that another sandbox uses',
      'listener_rejected',
      async (scene) => {
        const other = await scene.createBox('other');
        return { handed_over: scene.handOver(other.listener.handle, 'box') };
      },
    ],
    [
      'a listener on every address of the namespace',
      'listener_rejected',
      async (scene) => {
        const { space } = await scene.openBox();
        const wide = await openNamespaceListener(space, { host: '0.0.0.0', port: 3129 });
        return { handed_over: scene.handOver(wide.handle, 'box') };
      },
    ],
    ['no descriptor', 'listener_rejected', (scene) => ({ handed_over: scene.handOver(undefined, 'box') })],
  ];
  it.each(rows)('I8 %s', async (_, code, listen) => {
    await using scene = await createNamespaceScene();
    const given = await listen(scene);
    const before = await idsOf(scene);
    const refused = await scene.ask('POST', PATH, { id: 'box', listen: given });
    expect(refused).toMatchObject({ status: 403, body: { code } });
    expect(await idsOf(scene)).toEqual(before);
  });

  it('I8 sockets that are no TCP listener', async () => {
    await using scene = await createNamespaceScene();
    await using scratch = await createScratch();
    const unix = await listening(createServer(), { path: join(scratch.path, 'socket') });
    const tcp = await listening(createServer(), { port: 0, host: '127.0.0.1' });
    const { port } = tcp.address() as { port: number };
    const connected = connect(port, '127.0.0.1');
    await once(connected, 'connect');
    const udp = createSocket('udp4');
    for (const handle of [handleOf(unix), handleOf(connected), udp, unix]) {
      const handed_over = scene.handOver(handle, 'box');
      const refused = await scene.ask('POST', PATH, { id: 'box', listen: { handed_over } });
      expect(refused).toMatchObject({ status: 403, body: { code: 'listener_rejected' } });
    }
    tcp.close();
    connected.destroy();
  });

  it('I8 where namespaces are off, also with the admin API on a port', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    expect(() => proxy.sidecar.handOver({}, undefined)).toThrow('sandboxes.namespaces is off');
    const refused = await proxy.admin('POST', PATH, { id: 'box', listen: { handed_over: 'A'.repeat(22) } });
    expect(refused).toMatchObject({ status: 403, body: { code: 'namespaces_off' } });
  });
});

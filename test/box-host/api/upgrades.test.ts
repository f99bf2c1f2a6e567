// Connections to the data plane and to the ports of a box go through the API of the box host: with its token, to a box that runs,
// and no further than that box lives.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAttachedEngine } from '../../../src/box-host/attached-engine.ts';
import type { BoxEngine } from '../../../src/box-host/engine.ts';
import { spawnAgent } from '../../box-agent/spawned-agent.ts';
import { type BoxHostScene, createBoxHostScene, execute, policyOf, specOf } from '../box-host-scene.ts';

/** Boxes whose agent is a process of this machine; it keeps what each was started with. */
function createEngine() {
  const started: Readonly<Record<string, string>>[] = [];
  const bundles: string[] = [];
  const agents: ChildProcess[] = [];
  const attached = createAttachedEngine({ host: '127.0.0.1', first: 0, last: 0 }, () => new Set());
  const engine: BoxEngine = {
    ...attached,
    kind: 'bubblewrap',
    async open(box, surroundings) {
      bundles.push(await surroundings.caBundle());
      return {
        ...(await attached.open(box, surroundings)),
        async openAgent(placeholders) {
          started.push(placeholders);
          const { child, stream } = spawnAgent();
          agents.push(child);
          stream.once('close', () => child.kill('SIGKILL'));
          return stream;
        },
      };
    },
  };
  return { started, bundles, agents, createEngine: async () => engine };
}

async function upgradeStatus(
  { directory }: BoxHostScene,
  path: string,
  { token, protocol = 'sallyport-data-plane' }: { token?: string; protocol?: string } = {},
): Promise<number> {
  const bearer = token ?? (await readFile(join(directory, 'token'), 'utf8'));
  const headers = {
    Authorization: `Bearer ${bearer}`,
    Connection: 'Upgrade',
    Upgrade: protocol,
  };
  const socketPath = join(directory, 'api.sock');
  const asked = requestHttp({ socketPath, path: `/v1/boxes/${path}`, headers, agent: false });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  asked.on('response', (response) => resolve(response.resume().statusCode ?? 0));
  asked.on('upgrade', (_, socket) => {
    socket.destroy();
    resolve(101);
  });
  asked.on('error', reject).end();
  return promise;
}

describe('a connection to the data plane', () => {
  it('runs commands in the box, with the placeholders of the newest rules', async () => {
    const engine = createEngine();
    await using scene = await createBoxHostScene(engine);
    const box = specOf();
    const policy = policyOf(1, 'key');
    const document = {
      rules: [{ match_hosts: ['api.localhost'], env_vars: { API_KEY: 'placeholder' }, headers: [] }],
    };
    await scene.runtime.start(box, policy);
    await scene.runtime.applyPolicy(box.id, {
      ...policy,
      version: 2,
      document: {
        rules: [{ ...document.rules[0], headers: [{ name: 'X-Key', type: 'plaintext', value: 'k' }] }],
      },
    });
    expect(scene.runtime.kind).toBe('bubblewrap');
    const connection = await scene.runtime.connect(box.id, 'data-plane');
    // Of idle connections.
    expect(Reflect.get(connection, 'timeout')).toBe(0);
    expect(await execute(connection, 'echo $((40 + 2))')).toEqual({
      status: 200,
      body: { stdout: '42\n', stderr: '', exit_code: 0 },
    });
    expect(engine.started).toEqual([{ API_KEY: 'placeholder' }]);
    expect(engine.bundles[0]?.split('BEGIN CERTIFICATE').length).toBeGreaterThan(2);
    connection.destroy();
  });

  it('runs none after the box was stopped', async () => {
    await using scene = await createBoxHostScene(createEngine());
    const box = specOf();
    await scene.runtime.start(box, policyOf(1, 'key'));
    const connection = await scene.runtime.connect(box.id, 'data-plane');
    const file = join(scene.directory, 'started');
    const waiting = execute(connection, `touch ${file}; exec tail -f /dev/null`);
    await execute(await scene.runtime.connect(box.id, 'data-plane'), `until [ -e ${file} ]; do :; done`);
    await scene.runtime.stop(box.id);
    expect((await waiting).status).not.toBe(200);
    await expect(scene.runtime.connect(box.id, 'data-plane')).rejects.toMatchObject({ kind: 'failed' });
  });

  it('is rejected without the token, for another id, and for a box that somebody else runs', async () => {
    await using scene = await createBoxHostScene();
    const box = specOf();
    await scene.runtime.start(box, policyOf(1, 'key'));
    const protocol = 'sallyport-port';
    const plane = `${box.id}/data-plane`;
    expect(await upgradeStatus(scene, plane, { token: 'wrong' })).toBe(401);
    expect(await upgradeStatus(scene, `${box.id}/ports/80`, { token: 'wrong', protocol })).toBe(401);
    expect(await upgradeStatus(scene, plane, { protocol })).toBe(404);
    for (const path of ['..%2f/data-plane', `${box.id}/ports/80`])
      expect(await upgradeStatus(scene, path)).toBe(404);
    for (const port of ['0', '080', '65536', '-1', '', '80/', '3128x'])
      expect(await upgradeStatus(scene, `${box.id}/ports/${port}`, { protocol })).toBe(404);
    expect(await upgradeStatus(scene, `${specOf().id}/data-plane`)).toBe(500);
    expect(await upgradeStatus(scene, plane)).toBe(501);
    for (const to of ['data-plane', { port: 80 }] as const)
      await expect(scene.runtime.connect(box.id, to)).rejects.toMatchObject({ kind: 'not_supported' });
  });
});

describe('a connection to a port of a box', () => {
  const engine = createEngine();
  let scene: BoxHostScene;
  const box = specOf();
  beforeAll(async () => {
    scene = await createBoxHostScene(engine);
    await scene.runtime.start(box, policyOf(1, 'key'));
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  /** The agent is a process of this machine, and so is what it connects to. */
  async function listen(onSocket: (socket: Socket) => void) {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined);
      onSocket(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return { port, [Symbol.dispose]: () => void server.close() };
  }

  it('carries bytes, and each direction ends by itself', async () => {
    using echo = await listen((socket) => socket.pipe(socket));
    const connection = await scene.runtime.connect(box.id, { port: echo.port });
    connection.end(Buffer.alloc(1_000_000, 'x'));
    let bytes = 0;
    for await (const piece of connection) bytes += piece.length;
    expect(bytes).toBe(1_000_000);
  });

  it('is refused to the port of the proxy, and where nothing listens, each with an error of its own', async () => {
    const closed = await listen(() => undefined);
    closed[Symbol.dispose]();
    await expect(scene.runtime.connect(box.id, { port: 3128 })).rejects.toMatchObject({
      kind: 'port_refused',
    });
    await expect(scene.runtime.connect(box.id, { port: closed.port })).rejects.toMatchObject({
      kind: 'not_listening',
    });
    await expect(scene.runtime.connect(specOf().id, { port: 80 })).rejects.toMatchObject({ kind: 'failed' });
  });

  it('ends for a server that is silent when the client leaves', async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    using silent = await listen((socket) => void socket.resume().on('end', () => resolve()));
    (await scene.runtime.connect(box.id, { port: silent.port })).destroy();
    await left;
  });

  it('breaks, and does not end, when the agent is killed; the next call starts another', async () => {
    using server = await listen((socket) => void socket.write('a part'));
    const connection = await scene.runtime.connect(box.id, { port: server.port });
    await once(connection, 'data');
    let hasEnded = false;
    connection.on('end', () => (hasEnded = true));
    const broken = once(connection, 'error');
    engine.agents.at(-1)?.kill('SIGKILL');
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
    expect(hasEnded).toBe(false);
    const next = await scene.runtime.connect(box.id, { port: server.port });
    expect(String((await once(next, 'data'))[0])).toBe('a part');
    next.destroy();
  });

  it('is one of a bounded number, which leaves calls for commands', async () => {
    using server = await listen(() => undefined);
    const connect = () => scene.runtime.connect(box.id, { port: server.port });
    const open = await Promise.all(Array.from({ length: 48 }, connect));
    await expect(connect()).rejects.toMatchObject({ kind: 'no_capacity' });
    const plane = await scene.runtime.connect(box.id, 'data-plane');
    expect((await execute(plane, 'true')).status).toBe(200);
    plane.destroy();
    for (const connection of open) connection.destroy();
    // One place is free as soon as the box host has seen that a client left.
    let next = await connect().catch(() => undefined);
    while (next === undefined) next = await connect().catch(() => undefined);
    next.destroy();
  });

  it('breaks when the box is stopped', async () => {
    using server = await listen((socket) => void socket.write('x'));
    const connection = await scene.runtime.connect(box.id, { port: server.port });
    await once(connection, 'data');
    const broken = once(connection, 'error');
    await scene.runtime.stop(box.id);
    expect(await broken).toMatchObject([{ code: 'ECONNRESET' }]);
    await expect(scene.runtime.connect(box.id, { port: server.port })).rejects.toMatchObject({
      kind: 'failed',
    });
  });
});

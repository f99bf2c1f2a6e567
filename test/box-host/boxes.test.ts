// What fails while a box starts leaves nothing that serves a client.
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { BoxEngine } from '../../src/box-host/engine.ts';
import { SidecarAdmin } from '../../src/box-host/sidecars/sidecar-admin.ts';
import { createBoxHostScene, policyOf, sidecarPids, specOf } from './box-host-scene.ts';

const held = { is_held: true };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** The error of a connection, or what it is without one. */
async function connectionTo(port: number): Promise<unknown> {
  const socket = connect({ port, host: '127.0.0.1' });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  socket.on('connect', () => resolve('open')).on('error', ({ message }) => resolve(message));
  const found = await promise;
  socket.destroy();
  return found;
}

it('a box whose place cannot be stored is not served by the sidecar of others', async () => {
  const [good, bad] = [specOf(), specOf()];
  const port = await freePort();
  const createEngine = async (directory: string): Promise<BoxEngine> => ({
    kind: 'attached',
    version: undefined,
    snapshots: undefined,
    capabilities: async () => ({ isolation: held, limits: held, storage: held, agent: held }),
    async open({ id }) {
      const file = join(directory, 'boxes', `${id}.json`);
      if (id === bad.id) {
        await rm(file);
        await mkdir(join(file, 'in the way'), { recursive: true });
      }
      return {
        listen: { host: '127.0.0.1', port: id === bad.id ? port : 0, needsToken: false },
        ended: new Promise<string>(() => undefined),
        openAgent: undefined,
        close: async () => undefined,
      };
    },
    remove: async () => undefined,
    close: async () => undefined,
  });
  await using scene = await createBoxHostScene({ createEngine });
  const started = await scene.runtime.start(good, policyOf(1, 'key'));
  await expect(scene.runtime.start(bad, policyOf(1, 'key'))).rejects.toThrow();
  expect(await connectionTo(port)).toMatch(/ECONNREFUSED/);
  expect(await scene.keyAt(started)).toBe('key');
});

/** The admin API of the only sidecar. */
async function adminOf(directory: string): Promise<SidecarAdmin> {
  const [key = ''] = await readdir(join(directory, 'sidecars'));
  const read = (name: string) => readFile(join(directory, 'sidecars', key, name), 'utf8');
  const { admin } = JSON.parse(await read('config.json'));
  return new SidecarAdmin(admin.listen.slice('unix:'.length), await read('admin-token'));
}

it('a box that its sidecar serves is not served after a stop, even if the response that said so was lost', async () => {
  const [one, other] = [specOf(), specOf()];
  await using scene = await createBoxHostScene();
  const { runtime, directory } = scene;
  const started = await runtime.start(one, policyOf(1, 'key'));
  await runtime.start(other, policyOf(1, 'key'));
  for (const pid of await sidecarPids(directory)) process.kill(pid, 'SIGKILL');
  const isLost = async () => (await runtime.list()).every(({ appliedVersion }) => appliedVersion === 0);
  await expect.poll(isLost).toBe(true);
  await runtime.start(other, policyOf(1, 'key'));
  // As the box host would have asked for it, whose rules are not pushed again yet.
  const { document } = policyOf(1, 'key');
  const port = Number(new URL(started.proxyUrl ?? '').port);
  const asked = { id: one.id, listen: `127.0.0.1:${port}`, proxy_config: document };
  const { status } = await (await adminOf(directory)).ask('POST', '/v1/sandboxes', asked);
  expect([status, await connectionTo(port)]).toEqual([201, 'open']);
  await runtime.stop(one.id);
  expect(await connectionTo(port)).toMatch(/ECONNREFUSED/);
});

it('a box that ends by itself is reported with its reason, also if it cannot be closed, until it is started again', async () => {
  const box = specOf();
  const ends: PromiseWithResolvers<string>[] = [];
  let isStuck = true;
  const createEngine = async (): Promise<BoxEngine> => ({
    kind: 'attached',
    version: undefined,
    snapshots: undefined,
    capabilities: async () => ({ isolation: held, limits: held, storage: held, agent: held }),
    async open() {
      const end = Promise.withResolvers<string>();
      ends.push(end);
      return {
        listen: { host: '127.0.0.1', port: 0, needsToken: false },
        ended: end.promise,
        openAgent: undefined,
        close: async () => {
          if (isStuck) throw new Error('a mount is busy');
        },
      };
    },
    remove: async () => undefined,
    close: async () => undefined,
  });
  await using scene = await createBoxHostScene({ createEngine });
  const { runtime } = scene;
  await runtime.start(box, policyOf(1, 'key'));
  ends[0]?.resolve('its files are gone');
  for await (const _ of runtime.changes(new AbortController().signal))
    if ((await runtime.list())[0]?.state === 'failed') break;
  expect(await runtime.list()).toMatchObject([{ state: 'failed', reason: 'its files are gone' }]);
  isStuck = false;
  expect(await scene.keyAt(await runtime.start(box, policyOf(2, 'again')))).toBe('again');
  expect([ends.length, await runtime.list()]).toMatchObject([2, [{ state: 'running' }]]);
});

it('a box that cannot be closed is not reported as stopped, and its sidecar ends with the stop that closes it', async () => {
  const box = specOf();
  let isStuck = true;
  const createEngine = async (): Promise<BoxEngine> => ({
    kind: 'attached',
    version: undefined,
    snapshots: undefined,
    capabilities: async () => ({ isolation: held, limits: held, storage: held, agent: held }),
    open: async () => ({
      listen: { host: '127.0.0.1', port: 0, needsToken: false },
      ended: new Promise<string>(() => undefined),
      openAgent: undefined,
      close: async () => {
        if (isStuck) throw new Error('a process of the box does not end');
      },
    }),
    remove: async () => undefined,
    close: async () => undefined,
  });
  await using scene = await createBoxHostScene({ createEngine });
  const { runtime, directory } = scene;
  await runtime.start(box, policyOf(1, 'key'));
  await expect(runtime.stop(box.id)).rejects.toThrow();
  await expect(runtime.stop(box.id)).rejects.toThrow();
  expect(await runtime.list()).toMatchObject([{ id: box.id, state: 'running', appliedVersion: 0 }]);
  isStuck = false;
  await runtime.stop(box.id);
  expect(await runtime.list()).toMatchObject([{ id: box.id, state: 'stopped' }]);
  expect(await sidecarPids(directory)).toEqual([]);
});

it('a sidecar that does not respond costs its other boxes no more than a start', {
  tags: ['long'],
  timeout: 120_000,
}, async () => {
  const [one, other] = [specOf(), specOf()];
  await using scene = await createBoxHostScene();
  const { runtime, directory } = scene;
  await runtime.start(one, policyOf(1, 'key'));
  await runtime.start(other, policyOf(1, 'key'));
  for (const pid of await sidecarPids(directory)) process.kill(pid, 'SIGSTOP');
  const stopped = runtime.stop(one.id);
  const find = async () => (await runtime.list()).find(({ id }) => id === other.id);
  for await (const _ of runtime.changes(new AbortController().signal))
    if ((await find())?.appliedVersion === 0) break;
  await stopped;
  expect(await scene.keyAt(await runtime.start(other, policyOf(2, 'again')))).toBe('again');
  expect(await runtime.list()).toContainEqual(expect.objectContaining({ id: one.id, state: 'stopped' }));
});

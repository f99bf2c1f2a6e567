// What fails while a box starts leaves nothing that serves a client.
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { BoxEngine } from '../../src/box-host/engine.ts';
import { createBoxHostScene, policyOf, specOf } from './box-host-scene.ts';

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

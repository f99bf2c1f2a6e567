// Connections to the data plane of a box go through the API of the box host: with its token, to a box that runs, and no further
// than that box lives.
import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createAttachedEngine } from '../../../src/box-host/attached-engine.ts';
import type { BoxEngine } from '../../../src/box-host/engine.ts';
import { spawnAgent } from '../../box-agent/spawned-agent.ts';
import { type BoxHostScene, createBoxHostScene, execute, policyOf, specOf } from '../box-host-scene.ts';

/** Boxes whose agent is a process of this machine; it keeps what each was started with. */
function createEngine() {
  const started: Readonly<Record<string, string>>[] = [];
  const bundles: string[] = [];
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
          stream.once('close', () => child.kill('SIGKILL'));
          return stream;
        },
      };
    },
  };
  return { started, bundles, createEngine: async () => engine };
}

async function upgradeStatus({ directory }: BoxHostScene, id: string, token?: string): Promise<number> {
  const bearer = token ?? (await readFile(join(directory, 'token'), 'utf8'));
  const headers = {
    Authorization: `Bearer ${bearer}`,
    Connection: 'Upgrade',
    Upgrade: 'sallyport-data-plane',
  };
  const socketPath = join(directory, 'api.sock');
  const asked = requestHttp({ socketPath, path: `/v1/boxes/${id}/data-plane`, headers, agent: false });
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
    const connection = await scene.runtime.openAgent(box.id);
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
    const connection = await scene.runtime.openAgent(box.id);
    const file = join(scene.directory, 'started');
    const waiting = execute(connection, `touch ${file}; exec tail -f /dev/null`);
    await execute(await scene.runtime.openAgent(box.id), `until [ -e ${file} ]; do :; done`);
    await scene.runtime.stop(box.id);
    expect((await waiting).status).not.toBe(200);
    await expect(scene.runtime.openAgent(box.id)).rejects.toMatchObject({ kind: 'failed' });
  });

  it('is rejected without the token, for another id, and for a box that somebody else runs', async () => {
    await using scene = await createBoxHostScene();
    const box = specOf();
    await scene.runtime.start(box, policyOf(1, 'key'));
    expect(await upgradeStatus(scene, box.id, 'wrong')).toBe(401);
    expect(await upgradeStatus(scene, '..%2f')).toBe(404);
    expect(await upgradeStatus(scene, specOf().id)).toBe(500);
    expect(await upgradeStatus(scene, box.id)).toBe(501);
    await expect(scene.runtime.openAgent(box.id)).rejects.toMatchObject({ kind: 'not_supported' });
  });
});

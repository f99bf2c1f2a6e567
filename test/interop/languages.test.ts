// HTTP libraries of Node and Python as real processes: each gets its response, and the origin gets the injected credential
// exactly once, instead of the one that the client sent.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everyNth } from '../support/run-size.ts';
import { type ClientName, isInstalled, runClient, titleOf } from './client-programs.ts';
import { createScene, credentialsAt, INJECTED, type Scene, SECRET } from './interop-scene.ts';

const libraries: readonly ClientName[] = [
  'node-fetch',
  'node-https',
  'python-urllib',
  'python-requests',
  'python-httpx',
];

everyNth(
  3,
  libraries.map((name) => [titleOf(name), name] as const),
  (some, options) =>
    describe.each(some)('%s', options, (_, name) => {
      let scene: Scene;
      beforeAll(async () => void (scene = await createScene()));
      afterAll(() => scene[Symbol.asyncDispose]());
      const present = isInstalled(name);

      it.runIf(present)('reaches a host with a rule', async () => {
        const { code, stdout, stderr } = await runClient(
          name,
          [`https://good.test:${scene.origin.port}/v1/x?y=z`],
          scene.proxy,
        );
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        const { status, text } = JSON.parse(stdout);
        expect({ status, response: JSON.parse(text) }).toMatchObject({
          status: 200,
          response: { target: '/v1/x?y=z' },
        });
        expect(stdout).not.toContain(SECRET);
        const seen = credentialsAt(scene.origin);
        expect(seen.length).toBeGreaterThan(0);
        expect(seen.filter((values) => values.join() !== INJECTED)).toEqual([]);
      });

      it.runIf(present)('uploads a body', async () => {
        const body = Buffer.alloc(300_000, 'abcdefg');
        const file = await scene.scratch.write('body', body.toString());
        const { stdout } = await runClient(
          name,
          [`https://good.test:${scene.origin.port}/up`, file],
          scene.proxy,
        );
        const sha256 = createHash('sha256').update(body).digest('hex');
        expect(JSON.parse(JSON.parse(stdout).text)).toMatchObject({
          method: 'POST',
          body: { length: body.length, sha256 },
        });
      });

      it.runIf(present)('reaches a host with a callback, and keeps its own header elsewhere', async () => {
        const before = scene.origin.requests.length;
        await runClient(name, [`https://callback.test:${scene.origin.port}/`], scene.proxy);
        expect(new Set(credentialsAt(scene.origin).slice(before).flat())).toEqual(new Set([INJECTED]));
        expect(scene.callback.calls).toHaveLength(1);
        expect(scene.callback.calls[0]?.body).toEqual({ host: 'callback.test', port: scene.origin.port });
      });

      // node:https does not support http://.
      if (name === 'node-https') return;

      it.runIf(present)('is forwarded over plain http without a credential', async () => {
        const { stdout } = await runClient(
          name,
          [`http://plain.test:${scene.plainOrigin.port}/p`],
          scene.proxy,
        );
        expect(JSON.parse(stdout).status).toBe(200);
        expect(new Set(credentialsAt(scene.plainOrigin).flat())).toEqual(new Set(['from-the-client']));
      });
    }),
);

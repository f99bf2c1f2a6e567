// From the API through the box host into a box that bubblewrap isolates: a program inside calls a TLS origin. The origin sees the
// secret of the workspace, the box does not have it, and nothing but its proxy is reached.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createBubblewrapEngine } from '../../../src/box-host/bubblewrap-engine.ts';
import { detectCapabilities } from '../../../src/box-host/bubblewrap/capabilities.ts';
import { HiddenPaths } from '../../../src/box-host/bubblewrap/hidden-paths.ts';
import { linkUsr } from '../../../src/box-host/snapshots/base-snapshot.ts';
import { type BoxHostScene, createBoxHostScene, execute, HOST } from '../../box-host/box-host-scene.ts';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';

let host: BoxHostScene;
let scene: BoxScene;
beforeAll(async () => {
  const found = await detectCapabilities();
  if (found.obstacles.length > 0)
    throw new Error(`this machine isolates no boxes: ${found.obstacles.join('; ')}`);
  const log = createLog('silent', { write: () => undefined });
  host = await createBoxHostScene({
    async createEngine(directory) {
      // Without the search for what only root may read.
      const base = join(directory, 'bubblewrap', 'snapshots', 'base');
      await mkdir(join(base, 'root', 'usr'), { recursive: true });
      await linkUsr(join(base, 'root'));
      await writeFile(join(base, 'snapshot.json'), '{"bytes":0,"entries":0,"hostUsr":{"hidden":[]}}');
      return createBubblewrapEngine({ directory, found, log, hidden: new HiddenPaths(async () => []) });
    },
  });
  scene = await createBoxScene({ sandboxes: { runtime: 'bubblewrap' } }, host.runtime);
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
});

async function run(id: string, command: string): Promise<Readonly<Record<string, unknown>>> {
  const connection = await host.runtime.connect(id, 'data-plane');
  const { body } = await execute(connection, command);
  connection.destroy();
  return body;
}

describe('a box that is isolated', () => {
  it('uses a secret of its workspace without having it, and reaches nothing else', async () => {
    await scene.ask('POST', '/api/v1/workspaces/current/secrets', [
      { key: 'TOKEN', value: 'from-the-vault' },
    ]);
    const headers = [{ name: 'X-Key', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
    const { id, ...box } = await scene.create({
      ...{ name: 'isolated', proxy_config: { rules: [{ match_hosts: [HOST], headers }] } },
      ...{
        env_vars: { OWN: 'of-the-box' },
        mem_bytes: 2 ** 28,
        fs_capacity_bytes: 2 ** 26,
        cpu_millicores: 500,
      },
    });
    expect(box).toMatchObject({ runtime: 'bubblewrap', proxy_url: null, fs_capacity_bytes: 2 ** 26 });
    const url = `https://${HOST}:${host.origin.port}/`;
    const called = await run(id, `curl -sS --noproxy '' -o /dev/null -w '%{http_code}' ${url}; echo " $OWN"`);
    expect(called).toEqual({ stdout: '200 of-the-box\n', stderr: '', exit_code: 0 });
    expect(host.origin.requests.at(-1)?.headers).toContainEqual(['X-Key', 'Bearer from-the-vault']);

    const everything =
      'env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat /etc/* ~/.* 2>/dev/null; true';
    const { stdout } = await run(id, everything);
    expect(stdout).toContain('OWN=of-the-box');
    expect(stdout).not.toContain('from-the-vault');

    const seen = host.origin.requests.length;
    expect(await run(id, `curl -sS --max-time 20 --noproxy '*' ${url}`)).toMatchObject({ exit_code: 7 });
    const network = await run(id, 'tail -n +3 /proc/net/dev | cut -d: -f1; tail -n +2 /proc/net/route');
    expect(String(network['stdout']).trim()).toBe('lo');
    expect(host.origin.requests).toHaveLength(seen);

    expect((await scene.ask('DELETE', `${BOXES}/isolated`)).status).toBe(204);
    expect(await host.runtime.list()).toEqual([]);
  });
});

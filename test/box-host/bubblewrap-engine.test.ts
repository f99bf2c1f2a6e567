// Boxes that bubblewrap isolates, as the box host runs them: their only way out is the listener of their sidecar.
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { createBubblewrapEngine } from '../../src/box-host/bubblewrap-engine.ts';
import { detectCapabilities } from '../../src/box-host/bubblewrap/capabilities.ts';
import { HiddenPaths } from '../../src/box-host/bubblewrap/hidden-paths.ts';
import { linkUsr } from '../../src/box-host/snapshots/base-snapshot.ts';
import { type BoxHostScene, createBoxHostScene, execute, policyOf, specOf } from './box-host-scene.ts';
import { archive, inPieces } from '../support/archive-bytes.ts';

const MEBIBYTE = 1024 * 1024;

async function createIsolatedScene(): Promise<BoxHostScene> {
  const found = await detectCapabilities();
  if (found.obstacles.length > 0)
    throw new Error(`this machine isolates no boxes: ${found.obstacles.join('; ')}`);
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  return createBoxHostScene({
    async createEngine(directory) {
      await writeBase(join(directory, 'bubblewrap', 'snapshots', 'base'));
      return createBubblewrapEngine({ directory, found, log, hidden: new HiddenPaths(async () => []) });
    },
  });
}

/** The programs of this machine, without the search for what only root may read. */
async function writeBase(directory: string): Promise<void> {
  await mkdir(join(directory, 'root', 'usr'), { recursive: true });
  await linkUsr(join(directory, 'root'));
  const manifest = { bytes: 0, entries: 0, hostUsr: { hidden: [] } };
  await writeFile(join(directory, 'snapshot.json'), JSON.stringify(manifest));
}

async function run(
  { runtime }: BoxHostScene,
  id: string,
  command: string,
): Promise<Readonly<Record<string, unknown>>> {
  const connection = await runtime.connect(id, 'data-plane');
  const { body } = await execute(connection, command);
  connection.destroy();
  return body;
}

describe('an isolated box', () => {
  it('gets the header of its rule, trusts the CA of its proxy, and reaches nothing else', async () => {
    await using scene = await createIsolatedScene();
    const { runtime, origin } = scene;
    const box = specOf({ envVars: { OWN: 'of-the-box' }, limits: { fsCapacityBytes: 64 * MEBIBYTE } });
    const started = await runtime.start(box, policyOf(1, 'key'));
    expect(started.proxyUrl).toBeUndefined();
    const authority = `api.localhost:${origin.port}`;
    // The name is one of loopback, which programs call directly.
    const proxied = await run(
      scene,
      box.id,
      `curl -sS --noproxy '' -o /dev/null -w '%{http_code}' https://${authority}/; echo " $OWN"`,
    );
    expect(proxied).toEqual({ stdout: '200 of-the-box\n', stderr: '', exit_code: 0 });
    expect(origin.requests.at(-1)?.headers).toContainEqual(['X-Key', 'key']);
    const direct = await run(scene, box.id, `curl -sS --max-time 20 --noproxy '*' https://${authority}/`);
    expect(direct).toMatchObject({ exit_code: 7 });
    // Its files and its rules are there after a restart of the agent and of the box.
    await run(scene, box.id, 'echo kept > ~/file');
    await runtime.applyPolicy(box.id, policyOf(2, 'changed'));
    await run(scene, box.id, `curl -sS --noproxy '' -o /dev/null https://${authority}/`);
    expect(origin.requests.at(-1)?.headers).toContainEqual(['X-Key', 'changed']);
    await runtime.stop(box.id);
    await expect(runtime.connect(box.id, 'data-plane')).rejects.toMatchObject({ kind: 'failed' });
    await runtime.start(box, policyOf(3, 'again'));
    if ((await runtime.capabilities()).storage.isHeld && process.getuid?.() === 0)
      expect(await run(scene, box.id, 'cat ~/file')).toMatchObject({ stdout: 'kept\n' });
    await runtime.remove(box.id);
    expect(await runtime.list()).toEqual([]);
  });

  it('has the variables and limits of its last start, while it runs', async () => {
    await using scene = await createIsolatedScene();
    const { runtime, origin } = scene;
    const limits = { fsCapacityBytes: 64 * MEBIBYTE };
    const box = specOf({ envVars: { OWN: 'first' }, limits });
    await runtime.start(box, policyOf(1, 'key'));
    await runtime.start(
      { ...box, envVars: { OWN: 'second', NODE_OPTIONS: '--no-such' } },
      policyOf(2, 'key'),
    );
    // By the CA of the box still.
    const url = `https://api.localhost:${origin.port}/`;
    const script = `curl -sS --noproxy '' -o /dev/null -w '%{http_code}' ${url}; echo " $OWN $NODE_OPTIONS"`;
    // A variable that keeps Node from starting is one of the commands, and not of the agent.
    expect(await run(scene, box.id, script)).toMatchObject({ stdout: '200 second --no-such\n' });
    const smaller = { ...box, limits: { fsCapacityBytes: 32 * MEBIBYTE } };
    await expect(runtime.start(smaller, policyOf(3, 'key'))).rejects.toThrow(/cannot become smaller/);
    expect(await runtime.list()).toMatchObject([{ state: 'running' }]);
  });

  it('of a snapshot without any library has an agent all the same', { tags: ['long'] }, async () => {
    await using scene = await createIsolatedScene();
    const { runtime } = scene;
    const snapshotId = randomUUID();
    const bytes = archive([{ name: 'etc/motd', content: 'hello' }]);
    await runtime.snapshots.importArchive(snapshotId, inPieces(bytes), {
      ...{ maxBytes: MEBIBYTE, signal: new AbortController().signal },
    });
    const box = specOf({ snapshotId, limits: { fsCapacityBytes: 64 * MEBIBYTE } });
    await runtime.start(box, policyOf(1, 'key'));
    expect(await run(scene, box.id, 'true')).toMatchObject({
      detail: { error: 'CommandError', message: 'The shell does not exist in the sandbox' },
    });
  });

  it('is served again, by the same socket, when its sidecar was killed', { tags: ['long'] }, async () => {
    await using scene = await createIsolatedScene();
    const { runtime, host, origin } = scene;
    const box = specOf({ limits: { fsCapacityBytes: 64 * MEBIBYTE } });
    await runtime.start(box, policyOf(1, 'before'));
    await run(scene, box.id, 'true');
    const [pid = 0] = host?.sidecars.pids() ?? [];
    process.kill(pid, 'SIGKILL');
    for await (const _ of runtime.changes(new AbortController().signal))
      if ((await runtime.list())[0]?.appliedVersion === 0) break;
    // It waits at the socket, which the box host keeps open, until the rules are pushed.
    const waiting = run(
      scene,
      box.id,
      `curl -sS --noproxy '' -o /dev/null -w '%{http_code}' https://api.localhost:${origin.port}/`,
    );
    await runtime.start(box, policyOf(2, 'after'));
    expect(await waiting).toMatchObject({ stdout: '200' });
    expect(origin.requests.at(-1)?.headers).toContainEqual(['X-Key', 'after']);
  });
});

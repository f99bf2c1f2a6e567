// The runtime `attached`: what a client of a box gets is what the platform said last, whatever was killed in between.
import { describe, expect, it } from 'vitest';
import { createBoxHostRuntime } from '../../../src/platform/runtime/box-host-runtime.ts';
import type { BoxRecords } from '../../../src/platform/runtime/contract.ts';
import {
  type BoxHostScene,
  PROXY_TOKEN,
  createBoxHostScene,
  ended,
  hostPid,
  policyOf,
  sallyport,
  WORKSPACE,
  specOf,
} from '../../box-host/box-host-scene.ts';

/** Resolves when the box is listed so. */
async function listed(scene: BoxHostScene, id: string, expected: object): Promise<void> {
  for await (const _ of scene.runtime.changes(new AbortController().signal)) {
    const box = (await scene.runtime.list()).find((one) => one.id === id);
    if (box && Object.entries(expected).every(([key, value]) => Reflect.get(box, key) === value)) return;
  }
}

describe('a box', () => {
  it('gets the header of its policy, and its records are read with their source', async () => {
    await using scene = await createBoxHostScene();
    const { runtime } = scene;
    expect(runtime.kind).toBe('attached');
    expect(await runtime.capabilities()).toMatchObject({
      isolation: { isHeld: false },
      agent: { isHeld: false },
    });
    const box = specOf();
    const started = await runtime.start(box, policyOf(1, '{KEY}', { KEY: 'of-the-secret' }));
    expect(started).toMatchObject({
      proxyUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      needsProxyToken: false,
      caPem: expect.stringContaining('BEGIN CERTIFICATE'),
      appliedVersion: 1,
    });
    expect(await scene.keyAt(started)).toBe('of-the-secret');
    expect(await scene.keyAt(started)).toBe('of-the-secret');
    const batches: BoxRecords[] = [];
    const end = new AbortController();
    let attempts = 0;
    await runtime.readRecords(async (batch) => {
      attempts += 1;
      // Offered again.
      if (attempts === 1) throw new Error('the database is away');
      batches.push(batch);
      if (batches.flatMap(({ records }) => records).length >= 2) end.abort();
    }, end.signal);
    expect(batches.every(({ boxId, source }) => boxId === box.id && /^[0-9a-f-]{36}$/.test(source))).toBe(
      true,
    );
    const records = batches.flatMap((batch) => batch.records);
    expect(records.slice(0, 2)).toMatchObject([
      { number: 0, sandbox: box.id, outcome: 'injected', injected: ['X-Key'] },
      { number: 1, sandbox: box.id, outcome: 'injected' },
    ]);
    expect(JSON.stringify(records)).not.toContain('of-the-secret');
    await expect(runtime.connect(box.id, 'data-plane')).rejects.toMatchObject({ kind: 'not_supported' });
  });

  it('has the newest policy, and keeps it when the next is invalid', async () => {
    await using scene = await createBoxHostScene();
    const { runtime } = scene;
    const box = specOf();
    const started = await runtime.start(box, policyOf(3, '{A}{B}', { A: 'a', B: 'b' }));
    expect(await runtime.applyPolicy(box.id, policyOf(4, '{A}', { A: 'changed' }))).toEqual({
      appliedVersion: 4,
    });
    expect(await scene.keyAt(started)).toBe('changed');
    // Older, and late.
    expect(await runtime.applyPolicy(box.id, policyOf(2, 'old'))).toEqual({ appliedVersion: 4 });
    expect(await runtime.start(box, policyOf(3, 'old'))).toMatchObject({ appliedVersion: 4 });
    // The secret is gone with the policy that named it last.
    await expect(runtime.applyPolicy(box.id, policyOf(5, '{B}'))).rejects.toMatchObject({
      kind: 'invalid_policy',
      issues: [{ loc: ['rules', 0, 'headers', 0, 'value'] }],
    });
    expect(await scene.keyAt(started)).toBe('changed');
    expect(await runtime.list()).toEqual([{ id: box.id, state: 'running', appliedVersion: 4 }]);
  });

  it('that is stopped has no listener, and has its port and its CA again', async () => {
    await using scene = await createBoxHostScene();
    const { runtime } = scene;
    const box = specOf();
    const started = await runtime.start(box, policyOf(1, 'one'));
    await runtime.stop(box.id);
    await expect(scene.keyAt(started)).rejects.toThrow('ECONNREFUSED');
    expect(await runtime.list()).toEqual([{ id: box.id, state: 'stopped', appliedVersion: 0 }]);
    await expect(runtime.applyPolicy(box.id, policyOf(2, 'two'))).rejects.toMatchObject({ kind: 'failed' });
    const again = await runtime.start(box, policyOf(2, 'two'));
    expect([again.proxyUrl, again.caPem]).toEqual([started.proxyUrl, started.caPem]);
    expect(await scene.keyAt(again)).toBe('two');
  });

  it('that is removed leaves no file and no process', async () => {
    await using scene = await createBoxHostScene();
    const { runtime, host, directory } = scene;
    const { readdir } = await import('node:fs/promises');
    const before = (await readdir(directory, { recursive: true })).toSorted();
    const box = specOf();
    await runtime.start(box, policyOf(1, 'one'));
    const [pid = 0] = host?.sidecars.pids() ?? [];
    await runtime.remove(box.id);
    await runtime.remove(box.id);
    await ended(pid);
    expect(await runtime.list()).toEqual([]);
    const after = (await readdir(directory, { recursive: true })).toSorted();
    expect(after.filter((name) => name !== 'sidecars')).toEqual(before);
  });

  it('that does not start leaves nothing', async () => {
    await using scene = await createBoxHostScene();
    const { runtime, host } = scene;
    const box = specOf();
    const broken = { ...policyOf(1, 'x'), document: { rules: [{ match_hosts: ['*'] }] } };
    await expect(runtime.start(box, broken)).rejects.toMatchObject({ kind: 'invalid_policy' });
    expect(await runtime.list()).toEqual([]);
    expect(host?.sidecars.pids()).toEqual([]);
  });

  it('shares its sidecar with boxes of its workspace alone', async () => {
    await using scene = await createBoxHostScene();
    const other = 'b3a1b7f4-0d5c-4d53-8a39-7b0c6fbd2f10';
    const boxes = [specOf(), specOf(), specOf({ workspaceId: other })];
    const [one, two, three] = await Promise.all(
      boxes.map((box, i) => scene.runtime.start(box, policyOf(1, `key-${i}`))),
    );
    const [ours, others] = [WORKSPACE, other].map((workspace_id) =>
      scene.host?.sidecars.currentOf({ workspace_id, slot: 0 }),
    );
    expect(scene.host?.sidecars.pids().toSorted()).toEqual([ours?.pid, others?.pid].toSorted());
    for (const [i, started] of [one, two, three].entries())
      expect(await scene.keyAt(started ?? fail())).toBe(`key-${i}`);
  });

  it('gets a secret of any name, also one of the prototype of objects', async () => {
    await using scene = await createBoxHostScene();
    const secrets = Object.fromEntries([['__proto__', 'of an odd name']]);
    const started = await scene.runtime.start(specOf(), policyOf(1, '{__proto__}', secrets));
    expect(await scene.keyAt(started)).toBe('of an odd name');
  });

  it('has a CA of its own, which stays the same while it exists and vouches for no other box', async () => {
    await using scene = await createBoxHostScene();
    const { runtime } = scene;
    const [first, second] = [specOf(), specOf()];
    const one = await runtime.start(first, policyOf(1, 'one'));
    const two = await runtime.start(second, policyOf(1, 'two'));
    expect(scene.host?.sidecars.pids()).toHaveLength(1);
    for (const [proxy, ca] of [
      [one, two],
      [two, one],
    ] as const) {
      const crossed = scene.keyAt({ proxyUrl: proxy.proxyUrl ?? '', caPem: ca.caPem ?? '' });
      await expect(crossed).rejects.toMatchObject({ code: 'SELF_SIGNED_CERT_IN_CHAIN' });
    }
    await runtime.stop(first.id);
    await runtime.stop(second.id);
    expect((await runtime.start(first, policyOf(2, 'again'))).caPem).toBe(one.caPem);
    expect(await scene.keyAt(one)).toBe('again');
    await runtime.remove(first.id);
    expect((await runtime.start(first, policyOf(3, 'new'))).caPem).not.toBe(one.caPem);
  });

  it('needs its token where other machines reach its listener, and another one ends the first', async () => {
    await using scene = await createBoxHostScene({ attachedListen: '0.0.0.0:0' });
    const { runtime } = scene;
    const box = specOf();
    const started = await runtime.start(box, policyOf(1, 'key'));
    expect(started.needsProxyToken).toBe(true);
    expect(await scene.keyAt(started)).toBe('the response to CONNECT was 407');
    expect(await scene.keyAt(started, PROXY_TOKEN)).toBe('key');
    const { Secret } = await import('../../../src/base/secret.ts');
    await runtime.start(
      { ...box, proxyToken: new Secret('another-token-of-enough-length') },
      policyOf(1, 'key'),
    );
    expect(await scene.keyAt(started, PROXY_TOKEN)).toBe('the response to CONNECT was 407');
    expect(await scene.keyAt(started, 'another-token-of-enough-length')).toBe('key');
  });
});

describe('a sidecar that is killed', () => {
  it('has lost its policies: no client is served until they are pushed again', async () => {
    await using scene = await createBoxHostScene();
    const { runtime, host } = scene;
    const box = specOf();
    const started = await runtime.start(box, policyOf(7, 'before'));
    const lost = listed(scene, box.id, { appliedVersion: 0 });
    process.kill(host?.sidecars.pids()[0] ?? fail(), 'SIGKILL');
    await lost;
    await expect(scene.keyAt(started)).rejects.toThrow('ECONNREFUSED');
    const again = await runtime.start(box, policyOf(8, 'after'));
    expect(again).toEqual({ ...started, appliedVersion: 8 });
    expect(await scene.keyAt(again)).toBe('after');
  });
});

describe('a box host', () => {
  it('is started by the platform, and outlives it', async () => {
    await using scene = await createBoxHostScene({ as: 'process' });
    const box = specOf();
    const started = await scene.runtime.start(box, policyOf(1, 'key'));
    const pid = await hostPid(scene.directory);
    await scene.runtime.close();
    const { createBoxHostRuntime } = await import('../../../src/platform/runtime/box-host-runtime.ts');
    const { directory } = scene;
    const next = await createBoxHostRuntime({ command: ['/nonexistent'], directory });
    expect(await next.list()).toEqual([{ id: box.id, state: 'running', appliedVersion: 1 }]);
    expect(await hostPid(directory)).toBe(pid);
    expect(await scene.keyAt(started)).toBe('key');
    await next.close();
  });

  it('that is killed ends with all sidecars; another one knows the boxes, which start with their port and CA', async () => {
    await using scene = await createBoxHostScene({ as: 'process' });
    const { runtime, directory } = scene;
    const box = specOf();
    const started = await runtime.start(box, policyOf(1, 'before'));
    const pid = (await hostPid(directory)) ?? fail();
    const stopped = listed(scene, box.id, { state: 'stopped' });
    process.kill(pid, 'SIGKILL');
    await stopped;
    expect(await hostPid(directory)).not.toBe(pid);
    const again = await runtime.start(box, policyOf(2, 'after'));
    expect([again.proxyUrl, again.caPem]).toEqual([started.proxyUrl, started.caPem]);
    expect(await scene.keyAt(again)).toBe('after');
  });
});

function fail(): never {
  throw new Error('there is none');
}

describe('a box host of another runtime than the configured one', () => {
  it('goes on with its boxes and takes no new one; without boxes it is replaced', async () => {
    await using scene = await createBoxHostScene({ as: 'process' });
    const { directory, sidecarConfigFile } = scene;
    const program = { command: sallyport, directory, sidecarConfigFile, runtime: 'bubblewrap' } as const;
    const [before, after] = [specOf(), specOf()];
    const { runtime } = await scene.runtime.start(before, policyOf(1, 'a'));
    expect(runtime).toBe('attached');
    const pid = await hostPid(directory);
    const other = await createBoxHostRuntime(program);
    expect([other.kind, await hostPid(directory)]).toEqual(['attached', pid]);
    await expect(other.start(after, policyOf(1, 'a'))).rejects.toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/needs the runtime "bubblewrap".*has "attached".*sandboxes\.runtime/),
    });
    const started = await other.start({ ...before, runtime }, policyOf(2, 'b'));
    expect(await scene.keyAt(started)).toBe('b');
    await other.remove(before.id);
    const replaced = await createBoxHostRuntime(program);
    expect(replaced.kind).toBe('bubblewrap');
    expect(await hostPid(directory)).not.toBe(pid);
    await expect(replaced.start({ ...before, runtime }, policyOf(3, 'c'))).rejects.toMatchObject({
      kind: 'failed',
    });
    expect(await replaced.list()).toEqual([]);
  });
});

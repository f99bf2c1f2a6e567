// kill -9 of sidecars and of the box host, at random: a platform that only compares what should run with what runs ends with both
// the same: each box has its newest policy, its port and its CA.
import { describe, expect, it } from 'vitest';
import type { BoxSpec, Runtime, StartedBox } from '../../../src/platform/runtime/contract.ts';
import {
  type BoxHostScene,
  createBoxHostScene,
  hostPid,
  policyOf,
  sidecarPids,
  specOf,
} from '../../box-host/box-host-scene.ts';

const ROUNDS = 50;

type Wanted = {
  readonly box: BoxSpec;
  version: number;
  acknowledged: number;
  started: StartedBox | undefined;
};

/** One pass of a reconciler: boxes without their policy are started. */
async function reconcile(runtime: Runtime, wanted: readonly Wanted[]): Promise<void> {
  const reports = new Map((await runtime.list()).map((report) => [report.id, report]));
  await Promise.all(
    wanted.map(async (one) => {
      const { state, appliedVersion = 0 } = reports.get(one.box.id) ?? {};
      if (state === 'running' && appliedVersion >= one.version) return;
      one.started = await runtime.start(one.box, policyOf(one.version, `version-${one.version}`));
      one.acknowledged = one.started.appliedVersion;
    }),
  );
}

/** Until a pass succeeds with nothing left to do. A call that was cut off by a kill is tried again. */
async function converge(runtime: Runtime, wanted: readonly Wanted[]): Promise<void> {
  for (;;) {
    try {
      await reconcile(runtime, wanted);
      const reports = await runtime.list();
      const isDone = wanted.every(({ box, version }) =>
        reports.some(
          ({ id, state, appliedVersion }) =>
            id === box.id && state === 'running' && appliedVersion === version,
        ),
      );
      if (isDone) return;
    } catch (error) {
      expect(error).toMatchObject({ name: 'RuntimeError' });
    }
  }
}

/** A process that was just killed is listed for another moment. Its clients are cut off then; no rules but the newest are used. */
async function expectNewest(scene: BoxHostScene, wanted: readonly Wanted[]): Promise<void> {
  for (const one of wanted)
    for (;;) {
      const key = await scene.keyAt(one.started ?? {}).catch(toCutOff);
      if (key !== CUT_OFF) {
        expect(key).toBe(`version-${one.version}`);
        break;
      }
      await converge(scene.runtime, wanted);
    }
}

const CUT_OFF = Symbol('cut off');

function toCutOff(error: unknown): typeof CUT_OFF {
  const { code = '' } = error as NodeJS.ErrnoException;
  expect(`${code} ${String(error)}`).toMatch(
    /ECONNREFUSED|ECONNRESET|EPIPE|the connection ended before a response/,
  );
  return CUT_OFF;
}

describe('after kills at random', () => {
  it('list and reality agree', { tags: ['long'], timeout: 600_000 }, async () => {
    await using scene = await createBoxHostScene({ as: 'process' });
    const { runtime, directory } = scene;
    const workspaces = [specOf().id, specOf().id];
    const wanted = Array.from({ length: 4 }, (_, i): Wanted => {
      const box = specOf({ workspaceId: workspaces[i % 2] ?? '' });
      return { box, version: 1, acknowledged: 0, started: undefined };
    });
    await converge(runtime, wanted);
    const before = wanted.map(({ started }) => [started?.proxyUrl, started?.caPem]);
    let seed = 20_261_123;
    const draw = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    for (let round = 0; round < ROUNDS; round++) {
      const sidecars = await sidecarPids(directory);
      const target = draw(3) === 0 ? await hostPid(directory) : sidecars[draw(Math.max(1, sidecars.length))];
      for (const one of wanted) one.version += draw(2);
      const converging = converge(runtime, wanted);
      if (target !== undefined) process.kill(target, 'SIGKILL');
      await converging;
      await converge(runtime, wanted);
      await expectNewest(scene, wanted);
    }
    // Ports and CAs are those of the first start, and no process is left that serves a box twice.
    expect(wanted.map(({ started }) => [started?.proxyUrl, started?.caPem])).toEqual(before);
    expect(await sidecarPids(directory)).toHaveLength(2);
    for (const { box } of wanted) await runtime.remove(box.id);
    expect(await runtime.list()).toEqual([]);
    expect(await sidecarPids(directory)).toEqual([]);
  });
});

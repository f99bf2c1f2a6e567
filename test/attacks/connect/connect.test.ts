// Plays every row of the stage `connect`, one after another, against two proxies and one small internet.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tracesOf } from '../../invariants/credential-scene.ts';
import { play, violations } from './connect-driver.ts';
import { type ConnectScene, SECRET, createConnectScene } from './connect-scene.ts';
import type { ConnectRow } from './connect-script.ts';
import { arrives, get, inside, withCredential } from './expectations.ts';
import { connectRows } from './rows.ts';

let scene: ConnectScene;
beforeAll(async () => {
  scene = await createConnectScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('attacks on CONNECT, tunnels and names', () => {
  it.each(connectRows)('$id', async (row) => {
    const seen = await play(scene, row);
    expect(violations(scene, row, seen)).toEqual([]);
  });
});

describe('after the connect attacks', () => {
  const bystander: ConnectRow = {
    id: 'D-01 bystander',
    script: inside('api.test:443', 'api.test', [get('api.test')]),
    expect: arrives('api.test', withCredential(get('api.test'))),
  };

  it('a bystander gets its injected response from each proxy', async () => {
    for (const row of [bystander, { ...bystander, script: { ...bystander.script, at: 'loose' as const } }])
      expect(violations(scene, row, await play(scene, row))).toEqual([]);
  });

  it('no request arrived at an origin after its row', () => {
    const arrived = connectRows.flatMap(({ expect: { arrived: all = [] } }) => all);
    for (const [at, { requests }] of Object.entries(scene.origins)) {
      const sent = arrived
        .filter((one) => one.at === at)
        .map(({ bytes }) => bytes.match(/ HTTP\/1\.[01]\r\n/g)?.length ?? 0);
      const bystanders = at === 'api' ? 2 : 0;
      expect([at, requests.length]).toEqual([at, sent.reduce((sum, count) => sum + count, bystanders)]);
    }
  });

  it('no log line contains the secret', () => {
    const lines = Object.values(scene.proxies).flatMap(({ proxy }) => proxy.lines);
    expect(tracesOf(SECRET, [JSON.stringify(lines)])).toEqual([]);
  });

  it('no exchange is open: both proxies close at once', async () => {
    for (const { proxy } of Object.values(scene.proxies)) {
      const startedMs = performance.now();
      await proxy[Symbol.asyncDispose]();
      // The drain waits 30 s for open exchanges.
      expect(performance.now() - startedMs).toBeLessThan(20_000);
    }
  });
});

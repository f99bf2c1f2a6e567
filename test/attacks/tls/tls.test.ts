// The rows of the stage `tls`, one after another, against one proxy.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TlsScene, createTlsScene, violations } from './tls-driver.ts';
import { allTlsRows } from './tls-rows.ts';
import { servedPlainly } from './tls-script.ts';

let scene: TlsScene;
beforeAll(async () => {
  scene = await createTlsScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('attacks on TLS handshakes', () => {
  it.each(allTlsRows)('$id', async (row) => {
    expect(violations(row, await scene.play(row))).toEqual([]);
  });
});

describe('after the tls attacks', () => {
  it('a bystander gets its injected response', async () => {
    const row = { id: 'S-01 bystander', script: { client: {} }, expect: servedPlainly } as const;
    expect(violations(row, await scene.play(row))).toEqual([]);
  });

  it('no exchange is open: the proxy closes at once', async () => {
    const startedMs = performance.now();
    await scene.proxy[Symbol.asyncDispose]();
    // The drain waits 500 ms for open exchanges.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});

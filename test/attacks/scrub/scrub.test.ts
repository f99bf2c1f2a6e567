// Stage `scrub`: hosts that echo the credential in a body, with a rule that has `scrub: body`.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askingRows } from './rows-asking.ts';
import { echoRows } from './rows-echoes.ts';
import { type ScrubScene, createScrubScene, violations } from './scrub-driver.ts';

describe.each([
  ['a host that echoes', echoRows],
  ['a client that requests a part or a coding', askingRows],
] as const)('%s', (_, rows) => {
  let scene: ScrubScene;
  beforeAll(async () => {
    scene = await createScrubScene();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(rows.map((row) => [row.id, row] as const))('%s', async (_id, row) => {
    expect(violations(row, await scene.play(row.script))).toEqual([]);
  });

  it('leaves no open exchange', async () => {
    for (const version of ['h1', 'h2'] as const) {
      const plain = {
        id: 'H-09 plain',
        script: { version, pieces: ['ok'] },
        expect: { body: 'ok' },
      } as const;
      expect(violations(plain, await scene.play(plain.script))).toEqual([]);
    }
    const before = scene.proxy.records().length;
    await scene.proxy.sidecar.close();
    expect(scene.proxy.records().length).toBe(before);
  });
});

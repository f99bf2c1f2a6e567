// The rows of class F against the gateway.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { playMessage } from '../message/message-driver.ts';
import { framingRows } from './gateway-rows.ts';
import { createRowScene, type Reached, type RowScene } from './gateway-scene.ts';
import { gatewayViolations } from './gateway-verdict.ts';

describe.each<Reached>(['address', 'stream'])('framing at the gateway, to a target by its %s', (reached) => {
  let scene: RowScene;
  beforeAll(async () => {
    scene = await createRowScene(reached);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(framingRows.map((row) => [row.id, row] as const))('%s', async (_, row) => {
    const seen = await playMessage(scene.target, row.script, row.expect, 'tunnel');
    expect(gatewayViolations(row, seen, scene.target.values('tunnel'))).toEqual([]);
  });
});

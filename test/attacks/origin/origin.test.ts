// Stage `origin`: hosts that answer what no host should, before a client that asks plainly.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OriginScene, createOriginScene } from './origin-driver.ts';
import { violations } from './origin-violations.ts';
import { originRows } from './origin-rows.ts';

const patient = originRows.filter(({ script }) => !script.isImpatient);
const impatient = originRows.filter(({ script }) => script.isImpatient);

describe.each([
  ['a host that answers', patient, false],
  ['a host that falls silent', impatient, true],
] as const)('%s', (_, rows, isImpatient) => {
  let scene: OriginScene;
  beforeAll(async () => {
    scene = await createOriginScene(isImpatient);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(rows.map((row) => [row.id, row] as const))('%s', async (_id, row) => {
    expect(violations(row, await scene.play(row))).toEqual([]);
  });

  it('leaves nothing behind', async () => {
    const bystander = rows[0] ?? expect.fail('no rows');
    const plain = { ...bystander, script: { response: [{ send: RESPONSE }], isImpatient } };
    const record = { outcome: 'injected', status: 200 };
    const seen = await scene.play(plain);
    expect(violations({ ...plain, expect: { client: RESPONSE, host: 'reused', record } }, seen)).toEqual([]);
    // Closing would end what is still under way, and leave a record of it.
    const before = scene.proxy.records().length;
    await scene.proxy.sidecar.close();
    expect(scene.proxy.records().length).toBe(before);
  });
});

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

// Stage `origin`: hosts that send invalid responses to a plain request.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OriginScene, createOriginScene } from './origin-driver.ts';
import { violations } from './origin-violations.ts';
import { originRows } from './origin-rows.ts';
import { everyNth } from '../../support/run-size.ts';

const patient = originRows.filter(({ script }) => !script.isImpatient);
const impatient = originRows.filter(({ script }) => script.isImpatient);

describe.each([
  ['a host that responds', patient, false],
  ['a host that falls silent', impatient, true],
] as const)('%s', (_, rows, isImpatient) => {
  let scene: OriginScene;
  beforeAll(async () => {
    scene = await createOriginScene(isImpatient);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  everyNth(
    2,
    rows.map((row) => [row.id, row] as const),
    (some, options) =>
      it.each(some)('%s', options, async (_id, row) => {
        expect(violations(row, await scene.play(row))).toEqual([]);
      }),
  );

  it('leaves no open exchange', async () => {
    const bystander = rows[0] ?? expect.fail('no rows');
    const plain = { ...bystander, script: { response: [{ send: RESPONSE }], isImpatient } };
    const record = { outcome: 'injected', status: 200 };
    const seen = await scene.play(plain);
    expect(violations({ ...plain, expect: { client: RESPONSE, host: 'reused', record } }, seen)).toEqual([]);
    // Closing aborts an open exchange, which leaves a record.
    const before = scene.proxy.records().length;
    await scene.proxy.sidecar.close();
    expect(scene.proxy.records().length).toBe(before);
  });
});

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

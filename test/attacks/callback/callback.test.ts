// Stage `callback`: endpoints that return no headers or wrong ones, and what is cached of their responses.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DialLedger, openDialLedger } from '../../invariants/dial-ledger.ts';
import { type CallbackScene, createCallbackScene } from './callback-driver.ts';
import { callbackRows } from './callback-rows.ts';
import type { CallbackRow } from './callback-script.ts';
import { violations } from './callback-violations.ts';
import { everyNth } from '../../support/run-size.ts';

describe.each([undefined, 'strict', 'impatient'] as const)('callbacks, %s', (kind) => {
  const rows = callbackRows.filter(({ script }) => script.config === kind);
  let ledger: DialLedger;
  let scene: CallbackScene;
  beforeAll(async () => {
    ledger = await openDialLedger();
    scene = await createCallbackScene(ledger, kind);
  });
  afterAll(async () => {
    await scene[Symbol.asyncDispose]();
    ledger[Symbol.dispose]();
  });

  everyNth(
    2,
    rows.map((row) => [row.id, row] as const),
    (some, options) =>
      it.each(some)('%s', options, async (_id, row) => {
        expect(violations(row, await scene.play(row))).toEqual([]);
      }),
  );

  it('leaves no open exchange', async () => {
    const seen = await scene.play(bystander);
    const isServed = kind !== 'strict';
    const outcomes = isServed ? ['call-1', 'call-1'] : ['failed', 'failed'];
    const wanted = { ...bystander, expect: { outcomes, calls: isServed ? 1 : 0 } };
    expect(violations(wanted, seen)).toEqual([]);
    // Closing aborts an open exchange, which leaves a record.
    const before = scene.proxy.records().length;
    await scene.proxy.sidecar.close();
    expect(scene.proxy.records().length).toBe(before);
  });
});

const bystander: CallbackRow = { id: 'C-07 none', script: {}, expect: { outcomes: [], calls: 0 } };

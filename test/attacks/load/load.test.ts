// Stage `load`: overload by many concurrent clients, slow clients and expensive input; a bystander must not be affected.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LoadStage, createLoadStage, violations } from './load-driver.ts';
import { loadRows } from './load-rows.ts';

describe.each(['usual', 'tight'] as const)('with %s limits', { tags: ['long'] }, (at) => {
  let stage: LoadStage;
  beforeAll(async () => {
    stage = await createLoadStage(at);
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  it.each(loadRows.filter(({ script }) => (script.at ?? 'usual') === at))('$id', async (row) => {
    expect(violations(row.expect, await stage.play(row.script, row.expect))).toEqual([]);
  });
});

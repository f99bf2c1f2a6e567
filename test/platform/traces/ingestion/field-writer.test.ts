// A payload that is large is read for its columns in small steps: others of the process wait for none of them.
import { tmpdir } from 'node:os';
import { expect, it, vi } from 'vitest';
import { FieldWriter } from '../../../../src/platform/traces/ingestion/field-writer.ts';
import { RequestMemory } from '../../../../src/platform/traces/ingestion/request-memory.ts';
import { createBodyTurns } from '../../../../src/platform/traces/ingestion/turns/body-turn.ts';
import { ValueSketch } from '../../../../src/platform/traces/ingestion/value-sketch.ts';

const STEP_BYTES = 4 * 1024;

it('what was held before a payload was large is read in steps, and nothing of it is lost', async () => {
  let inStep = 0;
  let largest = 0;
  const pushed = vi.spyOn(ValueSketch.prototype, 'push');
  const turn = createBodyTurns(1).open({ organization: 'a', key: 'b' });
  const memory = Object.assign(new RequestMemory(tmpdir(), turn), {
    pace: async () => {
      largest = Math.max(
        largest,
        pushed.mock.calls.slice(inStep).reduce((sum, [{ length }]) => sum + length, 0),
      );
      inStep = pushed.mock.calls.length;
    },
  });
  const text = Buffer.from(`[${'0,'.repeat(100 * 1024)}0]`);
  const writer = new FieldWriter('inputs', memory);
  for (let at = 0; at < text.length; at += STEP_BYTES) {
    writer.write(text.subarray(at, at + STEP_BYTES));
    await writer.drain();
    await memory.pace();
  }
  await writer.finish();
  expect(pushed.mock.calls.reduce((sum, [{ length }]) => sum + length, 0)).toBe(text.length);
  expect(largest).toBeLessThanOrEqual(2 * STEP_BYTES);
});

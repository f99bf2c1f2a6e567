import { expect, it } from 'vitest';
import { nextTurn } from '../../../../../src/base/steps.ts';
import { ALL_BYTES, noteGarbage } from '../../../../../src/platform/traces/ingestion/turns/buffer-garbage.ts';

const MIB = 1024 * 1024;

it('buffers that large bodies have left are collected, and the function for that is not in scope of others', async () => {
  const collected = Promise.withResolvers<void>();
  const registry = new FinalizationRegistry(() => collected.resolve());
  // In a frame of its own: nothing of it is on the stack afterwards.
  const leave = (): void => registry.register(Buffer.allocUnsafeSlow(128 * 1024), undefined);
  leave();
  noteGarbage(ALL_BYTES);
  await collected.promise;
  expect('gc' in globalThis).toBe(false);
});

it('so are those that were in use during several collections, before they are many', async () => {
  const before = process.memoryUsage().arrayBuffers;
  const held: Buffer[][] = [];
  let most = 0;
  for (let at = 0; at < 160; at += 1) {
    held.push(Array.from({ length: 8 }, () => Buffer.allocUnsafeSlow(64 * 1024)));
    if (held.length > 4) held.shift();
    noteGarbage(2 * MIB);
    await nextTurn();
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(most / MIB).toBeLessThan(24);
});

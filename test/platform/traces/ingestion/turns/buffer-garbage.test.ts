import { expect, it } from 'vitest';
import { ALL_BYTES, noteGarbage } from '../../../../../src/platform/traces/ingestion/turns/buffer-garbage.ts';

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

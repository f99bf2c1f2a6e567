import { expect, it } from 'vitest';
import { HexText } from '../../../../src/platform/store/postgres/hex-text.ts';

const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);

it('has the digits of every byte', () => {
  const text = new HexText(() => true);
  expect(text.of(bytes).toString()).toBe(Buffer.from(bytes).toString('hex'));
  expect(text.of(new Uint8Array())).toHaveLength(0);
});

it('uses the same memory again for what is no longer, once it was sent', () => {
  let isSent = true;
  const text = new HexText(() => isSent);
  const first = text.of(bytes);
  const second = text.of(bytes.subarray(0, 100));
  expect([second.buffer === first.buffer, second.length]).toEqual([true, 200]);
  isSent = false;
  const third = text.of(bytes.subarray(100));
  expect(third.buffer === first.buffer).toBe(false);
  expect(second.toString()).toBe(Buffer.from(bytes.subarray(0, 100)).toString('hex'));
  isSent = true;
  expect(text.of(bytes).buffer === third.buffer).toBe(false);
});

// The first bytes of a tunnel: what they are, over any split, and that every byte is put back.
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Sniffed, sniff } from '../../../src/proxy/tunnel/sniff.ts';

/** The result for these pieces, and the bytes that can be read after it. */
async function sniffed(pieces: readonly Buffer[]): Promise<readonly [Sniffed['kind'], string]> {
  const stream = new PassThrough();
  const { promise, resolve } = Promise.withResolvers<Sniffed>();
  sniff(stream as unknown as Socket, 60_000, resolve);
  for (const piece of pieces) stream.write(piece);
  stream.end();
  const { kind } = await promise;
  const rest = kind === 'closed' ? '' : Buffer.concat(await stream.toArray()).toString('latin1');
  return [kind, rest];
}

it.each([
  ['an HTTP request', 'GET / HTTP/1.1\r\n\r\n', 'http'],
  ['any upper-case letter', 'Zoo', 'http'],
  ['a lower-case letter', 'get / HTTP/1.1\r\n\r\n', 'unknown'],
  ['SSH', '\x00\x01SSH', 'unknown'],
  ['a record that is no ClientHello', '\x16\x03\x03\x00\x04\x02\x00\x00\x00', 'error'],
])('%s: %j is %s', async (_, text, kind) => {
  expect(await sniffed([Buffer.from(text, 'latin1')])).toEqual([kind, text]);
});

it('a client that leaves within a ClientHello is gone', async () => {
  expect(await sniffed([Buffer.from('\x16\x03', 'latin1')])).toEqual(['closed', '']);
});

it('a client that sends nothing has until the deadline', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const found = vi.fn();
  sniff(new PassThrough() as unknown as Socket, 10_000, found);
  vi.advanceTimersByTime(9_999);
  expect(found).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(found).toHaveBeenCalledExactlyOnceWith({ kind: 'timeout' });
});

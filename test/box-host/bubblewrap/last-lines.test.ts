import { PassThrough, Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { LastLines } from '../../../src/box-host/bubblewrap/last-lines.ts';

it('the last lines are those before the end, and not more than a few kilobytes', async () => {
  const stream = new PassThrough();
  const lines = new LastLines(stream);
  stream.write('x'.repeat(100_000));
  stream.end('the end\n');
  const text = await lines.end();
  expect([text.length, text.endsWith('xthe end\n')]).toEqual([4096, true]);
});

it('a writer is not read without a limit', async () => {
  const piece = Buffer.alloc(1024 * 1024);
  let pieces = 0;
  const stream = new Readable({
    read() {
      pieces += 1;
      this.push(piece);
    },
  });
  const lines = new LastLines(stream);
  await new Promise<void>((resolve) => void stream.once('pause', resolve));
  expect(pieces).toBeLessThan(8);
  stream.destroy();
  await lines.end();
});

it('a writer that never ends does not hold up the end', async () => {
  const stream = new PassThrough();
  const lines = new LastLines(stream);
  stream.write('last words');
  expect(await lines.end()).toBe('last words');
  expect(stream.destroyed).toBe(true);
});

// Output of workers as lines of the log: how fast it is read, and what is dropped.
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { WorkerOutput } from '../../../../src/platform/agent-server/workers/worker-output.ts';

function createOutput() {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line).msg) });
  return { lines, output: new WorkerOutput(log, 1) };
}

it('a stream that never ends is read in slices, and this process has its turn between them', async () => {
  const piece = Buffer.from(`${'x'.repeat(64 * 1024 - 1)}\n`);
  let read = 0;
  const stream = new Readable({
    read() {
      read += piece.length;
      this.push(piece);
    },
  });
  const { lines, output } = createOutput();
  const slices: number[] = [];
  const paused = Promise.withResolvers<void>();
  stream.on('pause', () => {
    slices.push(read);
    if (slices.length === 3) paused.resolve();
  });
  output.follow(stream, 'stdout');
  await paused.promise;
  // What the stream itself reads ahead is a piece or two.
  for (const [index, bytes] of slices.entries())
    expect(bytes).toBeLessThanOrEqual((index + 1) * 256 * 1024 + 2 * piece.length);
  stream.destroy();
  await output.closed();
  expect(lines.every((line) => line.length <= 8 * 1024 + 1)).toBe(true);
});

it('what V8 writes about its heap is found, on stderr alone', async () => {
  for (const [source, isOutOfHeap] of [
    ['stdout', false],
    ['stderr', true],
  ] as const) {
    const { lines, output } = createOutput();
    output.follow(Readable.from([Buffer.from('FATAL ERROR: JavaScript heap out of memory\nrest')]), source);
    await output.closed();
    expect([output.isOutOfHeap, lines.at(-1)]).toEqual([isOutOfHeap, 'rest']);
  }
});

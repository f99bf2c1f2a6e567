import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LineReader } from '../../../src/workload/output/line-reader.ts';
import type { Line } from '../../../src/workload/output/line-splitter.ts';

it('reports each line, and at the end what has no line break', async () => {
  const stream = new PassThrough();
  const lines: Line[] = [];
  const reader = new LineReader(stream, (line) => lines.push(line));
  stream.write('one\ntw');
  stream.end('o\nthree');
  await reader.end();
  expect(lines.map(({ text }) => text)).toEqual(['one', 'two', 'three']);
});

it('reports at most a thousand lines in a period, in order, and loses none', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const stream = new PassThrough();
  const lines: string[] = [];
  const reader = new LineReader(stream, ({ text }) => lines.push(text));
  const all = Array.from({ length: 2_500 }, (_, n) => `${n}`);
  stream.write(`${all.join('\n')}\n`);
  await vi.waitFor(() => expect(lines).toHaveLength(1_000));
  vi.advanceTimersByTime(100);
  expect(lines).toHaveLength(2_000);
  vi.advanceTimersByTime(100);
  expect(lines).toEqual(all);
  stream.end('last\n');
  await reader.end();
  expect(lines.at(-1)).toBe('last');
});

it('takes what comes although it has paused, as Node resumes the output of a process that ends', async () => {
  const program = spawn('/bin/sh', ['-c', 'yes | head -n 30000'], { stdio: ['ignore', 'pipe', 'ignore'] });
  let lines = 0;
  const reader = new LineReader(program.stdout, () => void (lines += 1));
  await once(program, 'exit');
  // Node does so in the next tick.
  await new Promise((resolve) => setImmediate(resolve));
  await reader.end();
  expect(lines).toBe(30_000);
});

it('makes a program wait that prints without end', async () => {
  const program = spawn('/usr/bin/yes', ['0123456789abcdef'.repeat(64)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void program.kill('SIGKILL'));
  let bytes = 0;
  const reader = new LineReader(program.stdout, ({ text }) => (bytes += text.length));
  await vi.waitFor(() => expect(bytes).toBeGreaterThan(512 * 1024));
  // What the program wants to print is far more than what was read: it waits in its pipe.
  expect(program.stdout.readableLength).toBeLessThan(1024 * 1024);
  program.kill('SIGKILL');
  await once(program, 'exit');
  await reader.end();
});

it('does not wait for the holder of a pipe when the program has ended', { tags: ['long'] }, async () => {
  const stream = new PassThrough();
  const lines: string[] = [];
  const reader = new LineReader(stream, ({ text }) => lines.push(text));
  stream.write('one\ntwo');
  await reader.end();
  expect(lines).toEqual(['one', 'two']);
  expect(stream.destroyed).toBe(true);
});

// When the sink writes: lines wait for one another, and no line waits for long. A write under way changes neither.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LogSink, createFdSink } from '../../src/base/log.ts';

type Written = (error: Error | null, bytes: number) => void;

const { writes } = vi.hoisted(() => ({ writes: [] as { text: string; done: Written }[] }));

vi.mock('node:fs', async (importOriginal) => ({
  ...(await importOriginal<object>()),
  write: (_fd: number, bytes: Buffer, done: Written) => writes.push({ text: bytes.toString(), done }),
}));

/** As the thread pool reports it. */
function finish(at: number): void {
  const { text = '', done } = writes[at] ?? {};
  done?.(null, Buffer.byteLength(text));
}

const FLUSH_DELAY_MS = 20;
const FLUSH_CHARS = 192 * 1024;
const texts = (): string[] => writes.map(({ text }) => text);

describe('the sink of log lines', () => {
  let sink: LogSink;

  beforeEach(() => {
    vi.useFakeTimers();
    writes.length = 0;
    sink = createFdSink(99);
  });

  afterEach(async () => {
    const closed = sink.close(0);
    await vi.runAllTimersAsync();
    writes.forEach((_, at) => finish(at));
    await closed;
    vi.useRealTimers();
  });

  it('writes a line after 20 ms, with all lines that came meanwhile', () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS - 1);
    sink.write('b\n');
    expect(texts()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(texts()).toEqual(['a\nb\n']);
  });

  it('writes at once when there is enough for a write', () => {
    const line = 'x'.repeat(FLUSH_CHARS);
    sink.write(line);
    expect(texts()).toEqual([line]);
  });

  it('writes many lines after 60 ms', () => {
    const line = 'x'.repeat(FLUSH_CHARS / 8);
    sink.write(line);
    vi.advanceTimersByTime(3 * FLUSH_DELAY_MS - 1);
    sink.write(line);
    expect(texts()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(texts()).toEqual([line + line]);
    // The next ones wait as long.
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    finish(0);
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    expect(texts()).toEqual([line + line, 'a\n']);
  });

  it('lets lines that came during a write wait for more of them', () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    // The write takes longer than a line may wait: the wait of these two begins with its end.
    sink.write('b\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    finish(0);
    expect(texts()).toEqual(['a\n']);
    sink.write('c\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    expect(texts()).toEqual(['a\n', 'b\nc\n']);
  });

  it('writes what came during a write at once if it is enough for a write', () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    const line = 'x'.repeat(FLUSH_CHARS);
    sink.write(line);
    expect(texts()).toEqual(['a\n']);
    finish(0);
    expect(texts()).toEqual(['a\n', line]);
  });

  it('writes again for the next line after a write with nothing behind it', () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    finish(0);
    vi.advanceTimersByTime(10 * FLUSH_DELAY_MS);
    expect(texts()).toEqual(['a\n']);
    sink.write('b\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    expect(texts()).toEqual(['a\n', 'b\n']);
  });

  it('writes all lines without delay when it is closed during a write', async () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    sink.write('b\n');
    const closed = sink.close();
    finish(0);
    expect(texts()).toEqual(['a\n', 'b\n']);
    finish(1);
    await closed;
  });

  it('repeats a write that failed, whatever waits', () => {
    sink.write('a\n');
    vi.advanceTimersByTime(FLUSH_DELAY_MS);
    writes[0]?.done(new Error('EAGAIN'), 0);
    vi.advanceTimersByTime(50);
    expect(texts()).toEqual(['a\n', 'a\n']);
  });
});

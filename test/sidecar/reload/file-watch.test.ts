import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createFileWatch, decideReport, type Seen } from '../../../src/sidecar/reload/file-watch.ts';
import { createScratch } from '../../support/scratch.ts';

describe('a change is reported', () => {
  const reports = (looks: readonly string[]): readonly number[] => {
    let seen: Seen = { reported: 'a' };
    return looks.flatMap((now, at) => {
      const decided = decideReport(seen, now);
      seen = decided.seen;
      return decided.isReport ? [at] : [];
    });
  };

  it.each([
    ['never while there is none', ['a', 'a', 'a'], []],
    ['at the second look that finds it', ['b', 'b', 'b', 'b'], [1]],
    ['again when the files are as before', ['b', 'b', 'a', 'a', 'a'], [1, 3]],
    ['never when it is undone before the second look', ['b', 'a', 'b', 'a', 'a'], []],
    ['when the files stay as they are', ['b', 'c', 'd', 'd'], [3]],
    [
      'at the fifth look that finds others, and again when they stay',
      ['b', 'c', 'd', 'e', 'f', 'g', 'g'],
      [4, 6],
    ],
  ] as const)('%s', (_, looks, expected) => {
    expect(reports(looks)).toEqual(expected);
  });
});

describe('a watch', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('reports what changed since it was created, each change once, and one report at a time', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('rules.json', 'old');
    using watch = createFileWatch([file]);
    writeFileSync(file, 'changed before the start');
    const held = Promise.withResolvers<void>();
    const onChange = vi.fn(() => held.promise);
    watch.start(onChange);
    await vi.advanceTimersByTimeAsync(2000);
    expect(onChange).toHaveBeenCalledTimes(1);
    writeFileSync(file, 'changed while it is being read');
    await vi.advanceTimersByTimeAsync(5000);
    expect(onChange).toHaveBeenCalledTimes(1);
    held.resolve();
    await vi.advanceTimersByTimeAsync(2000);
    expect(onChange).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(5000);
    expect(onChange).toHaveBeenCalledTimes(2);
  });

  it('does not report what is read for another reason', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('rules.json', 'old');
    using watch = createFileWatch([file]);
    const onChange = vi.fn(async () => undefined);
    watch.start(onChange);
    writeFileSync(file, 'new');
    watch.mark();
    await vi.advanceTimersByTimeAsync(5000);
    expect(onChange).not.toHaveBeenCalled();
  });

  it('ends', async () => {
    await using scratch = await createScratch();
    const file = await scratch.write('rules.json', 'old');
    const onChange = vi.fn(async () => undefined);
    {
      using watch = createFileWatch([file]);
      watch.start(onChange);
      writeFileSync(file, 'new');
    }
    await vi.advanceTimersByTimeAsync(5000);
    expect(onChange).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});

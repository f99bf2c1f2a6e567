// The benchmark of the agent server: wrong options end it before anything starts, events are counted across the pieces in which
// they come, and a figure that misses what it must be is reported.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countEvents } from '../../bench/agent/event-count.ts';
import { verdictsOf } from '../../bench/agent/report.ts';
import { projectRoot, runToEnd } from '../support/spawned-process.ts';

describe('npm run bench -- agent', () => {
  it.each([
    [['--rounds', '0'], 'bench: --rounds must be a whole number of at least 1, not 0\n'],
    [['--quick', '--full'], 'bench: --quick and --full exclude each other; use one of them\n'],
    [
      ['--only', 'loads,nosuch'],
      'bench: --only has no question nosuch; the questions are idle, loads, history, hostile\n',
    ],
  ])('%s ends with one line and exit code 2', async (args, expected) => {
    const bench = join(projectRoot, 'bench', 'main.ts');
    const { code, stdout, stderr } = await runToEnd(process.execPath, [bench, 'agent', ...args]);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expected });
  });
});

describe('the count of events', () => {
  const stream = 'event: metadata\ndata: {}\n\n' + 'event: custom\ndata: {"n":1}\nid: 1\n\n'.repeat(3);

  it.each([1, 2, 7, 13, 14, 15, 1000])('is the same in pieces of %d bytes', async (size) => {
    const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, n) =>
      Buffer.from(stream.slice(n * size, (n + 1) * size)),
    );
    expect(await countEvents(from(pieces), 'custom')).toBe(3);
  });

  it('ends with an error event', async () => {
    const failed = [Buffer.from('event: error\ndata: {"message":"no"}\n\n')];
    await expect(countEvents(from(failed), 'custom')).rejects.toThrow('"message":"no"');
  });
});

describe('the verdicts', () => {
  const loads = (latency: number, rate: number) => ({
    firstEvent: [latency],
    runsPerSecond: [rate],
    eventsPerSecond: [rate],
    eventsPerSecondTogether: [rate],
  });

  it('hold or miss by the ratio of both sides', () => {
    const verdicts = verdictsOf({
      loads: { sallyport: loads(9, 75), peer: loads(10, 100) },
      idle_mb: { sallyport: 51, peer: 20 },
      bystanders: [],
    });
    expect(verdicts.map(({ value, holds }) => [value, holds])).toEqual([
      [0.9, true],
      [0.9, true],
      [0.75, true],
      [0.75, false],
      [0.75, false],
      [51, false],
    ]);
  });

  it('miss where a figure is no number', () => {
    const verdicts = verdictsOf({
      loads: { sallyport: loads(Number.NaN, Number.NaN), peer: loads(10, 100) },
      bystanders: [],
    });
    expect(verdicts.map(({ holds }) => holds)).toEqual(Array.from({ length: 5 }, () => false));
  });
});

async function* from(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}

// How `npm run clients` runs a command: with its output, its exit code, and an end for all of its processes at the deadline.
import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runUntil } from '../../interop/clients/client-run.ts';

const run = (line: string, deadlineSeconds: number) =>
  runUntil(['bash', '-c', line], {
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', MARK: 'only this' },
    cwd: tmpdir(),
    deadlineSeconds,
  });

describe('a command', () => {
  it('has an exit code, both outputs, and no other environment', async () => {
    const { ending, output } = await run('echo "$MARK$HOME"; echo error >&2; exit 3', 30);
    expect(ending).toEqual({ kind: 'exited', code: 3 });
    expect(output.split('\n').toSorted()).toEqual(['', 'error', 'only this']);
  });

  it('ends at its deadline, with the processes that hold its output open', async () => {
    const { ending, output } = await run('sleep 600 & echo begun; wait', 0.5);
    expect(ending).toEqual({ kind: 'killed', afterSeconds: 0.5 });
    expect(output).toBe('begun\n');
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import '../../src/agent-worker/watchdog.ts';

const PROGRAM = join(import.meta.dirname, '../support/agent-worker/looping-program.ts');

it('ends a process whose event loop is held up when its parent was killed', async () => {
  const parent = spawn(process.execPath, [PROGRAM, 'parent'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(parent.stdout, 'data');
  expect(String(line)).toBe('loops\n');
  parent.kill('SIGKILL');
  // The stream ends when nobody has it open any more.
  await once(parent.stdout.resume(), 'end');
});

it('ends a process whose parent had ended before the watchdog began', async () => {
  // Not the parent of what this process starts.
  const child = spawn(process.execPath, [PROGRAM, String(process.ppid)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  });
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
});

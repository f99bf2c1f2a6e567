import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readProcess } from '../../src/workload/limits/process-table.ts';
import { requireTreeCommand, runTreeCommand } from '../../src/workload/tree-command.ts';
import { createScratch } from '../support/scratch.ts';
import { cleanEnvironment, projectRoot } from '../support/spawned-process.ts';

it('responds with what a program printed, and rejects with the reason of a failure', async () => {
  expect((await runTreeCommand(['echo', 'one'], { timeoutMs: 10_000 })).stdout).toBe('one\n');
  const failing = requireTreeCommand('it was not listed', ['ls', '/absent'], { timeoutMs: 10_000 });
  await expect(failing).rejects.toThrow(/^it was not listed: .*\/absent/);
});

it('a program ends with the process that started it, also when that is killed', async () => {
  await using scratch = await createScratch();
  const file = join(scratch.path, 'pid');
  const source = `
    import { runTreeCommand } from ${JSON.stringify(join(projectRoot, 'src/workload/tree-command.ts'))};
    const script = 'echo $$ >"$1"; exec sleep 600';
    await runTreeCommand(['/bin/sh', '-c', script, 'sh', ${JSON.stringify(file)}], { timeoutMs: 600_000 });`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: cleanEnvironment(),
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const read = async (): Promise<number> => Number(await readFile(file, 'utf8').catch(() => ''));
  await expect.poll(read, { timeout: 10_000 }).toBeGreaterThan(0);
  const pid = await read();
  expect(readProcess(pid)).toBeDefined();
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  await expect.poll(() => readProcess(pid), { timeout: 10_000 }).toBeUndefined();
});

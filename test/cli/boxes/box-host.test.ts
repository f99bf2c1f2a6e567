// `sallyport box-host`: what it rejects, and that a signal ends it. Its work is tested in test/platform/runtime.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../../support/scratch.ts';
import { SpawnedProcess, program, runToEnd } from '../../support/spawned-process.ts';

describe('sallyport box-host', () => {
  it.each([
    [[], '--directory is required'],
    [['--directory', '/tmp', '--attached-listen', 'here'], '--attached-listen must be address:port'],
    [['--directory', '/tmp', '--sidecar-config', '/nonexistent'], 'cannot be read'],
  ])('rejects %j', async (args, message) => {
    const ended = await runToEnd(process.execPath, [program, 'box-host', ...args]);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('is in no overview, and has a usage of its own', async () => {
    expect((await runToEnd(process.execPath, [program, '--help'])).stdout).not.toContain('box-host');
    expect((await runToEnd(process.execPath, [program, 'box-host', '--help'])).stdout).toContain(
      '--attached-listen',
    );
  });

  it('ends with a signal', async () => {
    await using scratch = await createScratch();
    const directory = join(scratch.path, 'host');
    await using host = new SpawnedProcess(process.execPath, [program, 'box-host', '--directory', directory]);
    await host.record(({ msg }) => msg === 'ready');
    host.kill('SIGTERM');
    expect(await host.exited).toEqual({ code: 0, signal: null });
  });
});

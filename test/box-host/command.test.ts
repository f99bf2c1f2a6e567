import { describe, expect, it } from 'vitest';
import { requireCommand, runCommand } from '../../src/box-host/command.ts';
import { ended } from './box-host-scene.ts';

describe('a program of the machine', () => {
  it('that hangs is killed with what it started', async () => {
    const hanging = ['/bin/sh', '-c', 'sleep 600 & echo $!; sleep 600'];
    const { code, stdout, stderr } = await runCommand(hanging, [], 100);
    expect([code, stderr]).toEqual([undefined, '/bin/sh did not end within 0.1 s']);
    await ended(Number(stdout));
  });

  it('that fails says why', async () => {
    const failing = requireCommand('it could not be done', [
      '/bin/sh',
      '-c',
      'echo first >&2; echo last >&2; exit 3',
    ]);
    await expect(failing).rejects.toThrow('it could not be done: last');
    await expect(requireCommand('it could not be done', ['/nonexistent'])).rejects.toThrow(/ENOENT/);
    expect(await requireCommand('it', ['/bin/echo', 'done'])).toBe('done\n');
  });
});

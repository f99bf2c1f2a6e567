import { chmod, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkSources, checkSpec, requireEnterable } from '../../src/workload/spec-check.ts';
import type { WorkloadSpec } from '../../src/workload/workload.ts';
import { createScratch } from '../support/scratch.ts';

const spec: WorkloadSpec = {
  ...{ id: 'one', command: ['true'], cwd: '/', env: {}, mounts: [], limits: {}, network: 'none' },
  onLine: () => undefined,
};
const mount = (source: string, target = source) => ({ mounts: [{ source, target }] });

describe('a workload is not started with', () => {
  it.each([
    ['an id that is no name', { id: '../x' }, 'id'],
    ['no command', { command: [] }, 'command'],
    ['a NUL in an argument', { command: ['a\0b'] }, 'NUL'],
    ['a relative directory', { cwd: 'here' }, 'cwd'],
    ['a variable whose name a shell would run', { env: { 'A=1; id': '' } }, 'env'],
    ['a variable that is too long', { env: { A: 'x'.repeat(200_000) } }, 'env.A'],
    [
      'too many variables',
      { env: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`A${n}`, 'x'.repeat(100_000)])) },
      'env',
    ],
    ['a limit of nothing', { limits: { pids: 0 } }, 'pids'],
    ['a part of a byte', { limits: { memBytes: 1.5 } }, 'memBytes'],
    ['a time that is none', { timeoutMs: Number.NaN }, 'timeoutMs'],
    ['a mount over the system', mount('/srv', '/usr/lib'), 'belongs to the system'],
    ['a mount over the root', mount('/srv', '/'), 'belongs to the system'],
    ['a mount over temporary files', mount('/srv', '/tmp'), 'belongs to the system'],
    ['a path with dots', mount('/srv/../etc', '/app'), 'without dots'],
  ] as const)('%s', (_, given, message) =>
    expect(() => checkSpec({ ...spec, ...given }, 'bubblewrap')).toThrow(message),
  );

  it('a mount elsewhere, where nothing can be mounted', () => {
    expect(() => checkSpec({ ...spec, ...mount('/srv', '/app') }, 'user')).toThrow('must be /srv');
    expect(() => checkSpec({ ...spec, ...mount('/srv') }, 'user')).not.toThrow();
  });
});

describe('a source', () => {
  async function createPlace(): Promise<string> {
    const scratch = await createScratch();
    onTestFinished(() => scratch[Symbol.asyncDispose]());
    await chmod(scratch.path, 0o711);
    return scratch.path;
  }
  const check = (source: string, isolation: 'bubblewrap' | 'user') =>
    checkSources(mount(source).mounts, isolation);

  it('is there, and no link leads to it', async () => {
    const place = await createPlace();
    await mkdir(join(place, 'real'));
    await symlink('real', join(place, 'link'));
    await expect(check(join(place, 'real'), 'bubblewrap')).resolves.toBeUndefined();
    await expect(check(join(place, 'link'), 'bubblewrap')).rejects.toThrow('symbolic link');
    await expect(check(join(place, 'absent'), 'bubblewrap')).rejects.toThrow('absent');
  });

  it('can be entered by a host user', async () => {
    const place = await createPlace();
    await mkdir(join(place, 'closed', 'below'), { recursive: true, mode: 0o700 });
    await expect(check(join(place, 'closed'), 'user')).resolves.toBeUndefined();
    await expect(check(join(place, 'closed', 'below'), 'user')).rejects.toThrow('chmod o+x');
    await expect(check(join(place, 'closed', 'below'), 'bubblewrap')).resolves.toBeUndefined();
    await expect(requireEnterable(join(place, 'closed'))).rejects.toThrow('another directory');
  });
});

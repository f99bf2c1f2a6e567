import { chown } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { chooseAccount, runProgram } from '../../../../src/platform/store/embedded/account.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const isRoot = process.getuid?.() === 0;

let scratch: Scratch;
beforeEach(async () => {
  scratch = await createScratch();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await scratch[Symbol.asyncDispose]();
});

describe('the account of the programs', () => {
  it.runIf(!isRoot)('is that of this process', async () => {
    expect(await chooseAccount([scratch.path])).toBeUndefined();
  });

  it.runIf(isRoot)(
    'is never root: the owner of the first path of another user, otherwise nobody',
    async () => {
      const missing = join(scratch.path, 'missing');
      expect(await chooseAccount([missing, scratch.path])).toEqual({ uid: 65_534, gid: 65_534 });
      await chown(scratch.path, 4711, 4712);
      expect(await chooseAccount([missing, scratch.path])).toEqual({ uid: 4711, gid: 4712 });
    },
  );

  it.runIf(isRoot)('is that of the running program', async () => {
    const account = { uid: 4711, gid: 4712 };
    expect((await runProgram('/usr/bin/id', ['-u'], { account })).stdout).toBe('4711\n');
  });
});

describe('a program', () => {
  const account = undefined;

  it('inherits no variable of this process', async () => {
    vi.stubEnv('PGHOST', 'hush');
    const { stdout } = await runProgram('/usr/bin/env', [], { account, libraries: '/lib/a' });
    expect(stdout.trim().split('\n').toSorted()).toEqual([
      'LC_ALL=C',
      'LD_LIBRARY_PATH=/lib/a',
      'PATH=/usr/bin:/bin',
    ]);
  });

  it('has an exit code, or none when it cannot be started', async () => {
    expect(await runProgram('/bin/sh', ['-c', 'echo out; echo err >&2; exit 3'], { account })).toEqual({
      code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
    });
    expect((await runProgram('/nonexistent', [], { account })).code).toBeUndefined();
  });
});

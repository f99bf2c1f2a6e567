import { existsSync, openSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  claimSecrets,
  secretFileVariables,
  secretVariables,
  withoutSecretVariables,
} from '../../src/sidecar/secret-environment.ts';
import { createScratch } from '../support/scratch.ts';
import { type LogRecord, SpawnedProcess } from '../support/spawned-process.ts';

const CANARY = 'canary-e09d55';
const program = join(import.meta.dirname, 'secret-environment-program.ts');

const env = {
  PATH: '/bin',
  SALLYPORT_LISTEN: '127.0.0.1:0',
  SALLYPORT_SECRETS_FILE: '/secrets.env',
  SALLYPORT_SECRET_TOKEN: CANARY,
  'SALLYPORT_SECRET_NOT-A-NAME': CANARY,
  SALLYPORT_SECRET_FILE: CANARY,
  SALLYPORT_SECRET_KEY_FILE: '/key',
  SALLYPORT_HANDED_SECRETS: 'key:/path',
};

describe('which variables hold what', () => {
  it('a secret: every one of the prefix but paths, whatever its name', () => {
    expect(secretVariables(env).map(({ name }) => name)).toEqual(['TOKEN', 'NOT-A-NAME', 'FILE']);
  });

  it('the path of a secret', () => {
    expect(secretFileVariables(env)).toEqual([
      { name: 'KEY', value: '/key', from: 'SALLYPORT_SECRET_KEY_FILE' },
    ]);
  });

  it('what remains holds no secret, and the original is untouched', () => {
    const before = { ...env };
    expect(Object.keys(withoutSecretVariables(env))).toEqual([
      'PATH',
      'SALLYPORT_LISTEN',
      'SALLYPORT_SECRETS_FILE',
      'SALLYPORT_SECRET_KEY_FILE',
    ]);
    expect(env).toEqual(before);
  });
});

describe('a hand-over that is not ours', () => {
  it('none: no secrets', () => {
    expect(claimSecrets({})).toEqual({ variables: [], operators: {} });
  });

  it('a file that was not sealed with the key is refused, and gone', async () => {
    await using scratch = await createScratch();
    const path = join(scratch.path, 'sealed');
    writeFileSync(path, JSON.stringify([{ name: 'A', value: 'a', from: 'A' }]).padEnd(64));
    const forged = { SALLYPORT_HANDED_SECRETS: `${Buffer.alloc(32).toString('base64url')}:${path}` };
    expect(() => claimSecrets(forged)).toThrow(/authenticate/);
    expect([existsSync(path), Object.keys(forged)]).toEqual([false, []]);
  });
});

/** What a descriptor stands for; one that was closed meanwhile stands for nothing. */
function linkOf(descriptor: string): string {
  try {
    return readlinkSync(descriptor);
  } catch {
    return '';
  }
}

describe.runIf(process.platform === 'linux')('a process started with secrets in its environment', () => {
  async function startedWith(
    variables: Record<string, string>,
    options: { args?: readonly string[]; descriptors?: readonly number[]; input?: string } = {},
  ): Promise<{ child: SpawnedProcess; says: LogRecord }> {
    const { args = [], ...rest } = options;
    const flags = ['--no-warnings', '--max-http-header-size=12345', program];
    const child = new SpawnedProcess(process.execPath, [...flags, ...args], { env: variables, ...rest });
    return { child, says: await child.record(({ msg }) => msg === 'ready') };
  }

  it('has them, and shows them nowhere that the system shows a process', async () => {
    const { child, says } = await startedWith({
      SALLYPORT_SECRET_TOKEN: CANARY,
      SALLYPORT_LOG_LEVEL: 'warn',
    });
    await using _ = child;
    expect(says).toMatchObject({
      names: ['TOKEN'],
      hasExpectedValue: true,
      variables: ['SALLYPORT_LOG_LEVEL'],
    });
    for (const file of ['environ', 'cmdline', 'comm', 'status'])
      expect([file, readFileSync(`/proc/${child.pid}/${file}`, 'latin1').includes(CANARY)]).toEqual([
        file,
        false,
      ]);
    // The process that we started is the one that runs, and no other was left to hold anything.
    expect(readFileSync(`/proc/${child.pid}/cmdline`, 'latin1').split('\0')).toContain(program);
    expect(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'latin1')).toBe('');
    expect(`${child.stdout}${child.stderr}`).not.toContain(CANARY);
  });

  it('leaves no file behind, open or closed', async () => {
    const { child, says } = await startedWith({ SALLYPORT_SECRET_TOKEN: CANARY });
    await using _ = child;
    const path = String(says['handoverFile']);
    expect(path).toMatch(/^\/dev\/shm\/sallyport-|^\/tmp\//);
    expect(existsSync(path)).toBe(false);
    const open = readdirSync(`/proc/${child.pid}/fd`).map((fd) => linkOf(`/proc/${child.pid}/fd/${fd}`));
    expect(open.filter((target) => target.includes('sallyport-'))).toEqual([]);
  });

  it('keeps its arguments, its Node flags and its standard input', async () => {
    const { child, says } = await startedWith(
      { SALLYPORT_SECRET_TOKEN: CANARY },
      { args: ['proxy', '--flag', 'a b', ''], input: 'for the agent' },
    );
    await using _ = child;
    expect(says).toMatchObject({
      arguments: ['proxy', '--flag', 'a b', ''],
      execArguments: ['--no-warnings', '--max-http-header-size=12345'],
      stdin: 'for the agent',
    });
  });

  it('still has what an inherited descriptor gave, which wins', async () => {
    await using scratch = await createScratch();
    const fd = openSync(await scratch.write('secrets.env', 'TOKEN=another\nOTHER=value'), 'r');
    const { child, says } = await startedWith(
      { SALLYPORT_SECRET_TOKEN: CANARY },
      { args: ['--secrets-fd', '3'], descriptors: [fd] },
    );
    await using _ = child;
    expect(says).toMatchObject({ names: ['OTHER', 'TOKEN'], hasExpectedValue: false });
  });

  it('reads standard input as a descriptor', async () => {
    const { child, says } = await startedWith(
      {},
      { args: ['--secrets-fd', '0'], input: `{"TOKEN":"${CANARY}"}` },
    );
    await using _ = child;
    expect(says).toMatchObject({ names: ['TOKEN'], hasExpectedValue: true, handoverFile: '' });
    // Still there: the next file to be opened would otherwise become standard input.
    expect(readdirSync(`/proc/${child.pid}/fd`)).toContain('0');
  });

  it('carries over many at once, more than a pipe would hold', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`SALLYPORT_SECRET_N${i}`, 'x'.repeat(60_000)]),
    );
    const { child, says } = await startedWith(many);
    await using _ = child;
    expect(says['names']).toHaveLength(10);
  });

  it('ends with the location, never the value, if a name is invalid', async () => {
    const child = new SpawnedProcess(process.execPath, [program], {
      env: { 'SALLYPORT_SECRET_A-B': CANARY },
    });
    await using _ = child;
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.stderr).toContain('SALLYPORT_SECRET_A-B: the name of a secret must have only letters');
    expect(child.stderr).not.toContain(CANARY);
  });
});

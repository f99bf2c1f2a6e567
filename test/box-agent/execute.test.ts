// Commands by the agent as a process: output, input, exit codes, the process group, background processes, and what a command
// sees of the agent.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WINDOW_BYTES } from '../../src/box-agent/protocol/credit.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { beginCommand, run, type SpawnedAgent, startAgent } from './spawned-agent.ts';

describe('a command', () => {
  let agent: SpawnedAgent;
  let scratch: Scratch;
  beforeAll(async () => {
    agent = startAgent();
    scratch = await createScratch();
  });
  afterAll(async () => {
    await agent[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  });

  it('returns its output and its exit code', async () => {
    const result = await run(agent.channel, 'echo out; echo err >&2; exit 3');
    expect(result).toMatchObject({ stdout: 'out\n', stderr: 'err\n', ended: { exitCode: 3, signal: 0 } });
    expect(result.started.pid).toBeGreaterThan(1);
  });

  it('reports the signal that ended it', async () => {
    expect((await run(agent.channel, 'kill -TERM $$')).ended).toEqual({ exitCode: 0, signal: 15 });
  });

  it('gets variables beside those of the agent, and its directory', async () => {
    const { stdout } = await run(agent.channel, 'echo "$A-$HOME"; pwd', {
      env: { A: 'b' },
      cwd: scratch.path,
    });
    expect(stdout).toBe(`b-/tmp\n${scratch.path}\n`);
  });

  it('reads the end of its input at once, unless input is wanted', async () => {
    expect((await run(agent.channel, 'cat; echo done')).stdout).toBe('done\n');
  });

  it('gets input, of any size, and its end', async () => {
    const { call, output } = beginCommand(agent.channel, 'wc -c', { stdin: true });
    await call.head;
    await call.write(Buffer.alloc(5 * WINDOW_BYTES));
    call.end();
    await call.result;
    expect(output.stdout.join('').trim()).toBe(String(5 * WINDOW_BYTES));
  });

  it('that closes its input does not hold up the call', async () => {
    const { call } = beginCommand(agent.channel, 'exec <&-; echo closed; sleep 0', { stdin: true });
    await call.write(Buffer.alloc(3 * WINDOW_BYTES));
    expect(await call.result).toEqual({ exitCode: 0, signal: 0 });
  });

  it('is killed with its process group', async () => {
    const { call, output } = beginCommand(agent.channel, 'sleep 1000 & echo $!; sleep 1000', {});
    await call.head;
    await expect.poll(() => output.stdout.join('')).toMatch(/\n/);
    call.kill();
    expect(await call.result).toEqual({ exitCode: 0, signal: 9 });
    const background = output.stdout.join('').trim();
    const { stdout } = await run(
      agent.channel,
      `cut -d' ' -f3 /proc/${background}/stat 2>/dev/null || echo gone`,
    );
    expect(stdout).toMatch(/^(gone|Z)\n$/);
  });

  it('is killed when its call is cancelled', async () => {
    const { call, output } = beginCommand(agent.channel, 'echo $$; exec sleep 1000');
    await expect.poll(() => output.stdout.join('')).toMatch(/\n/);
    const idle = new Promise<void>((resolve) => (agent.channel.onIdle = resolve));
    call.cancel();
    // The call ends when the process has.
    await idle;
    const pid = output.stdout.join('').trim();
    expect((await run(agent.channel, `test -e /proc/${pid} || echo gone`)).stdout).toBe('gone\n');
  });

  it('ends while a background process still holds its output, which lives on', async () => {
    const { stdout, ended } = await run(agent.channel, 'sleep 1000 & echo $!');
    expect(ended.exitCode).toBe(0);
    const pid = stdout.trim();
    expect((await run(agent.channel, `test -e /proc/${pid} && echo alive; kill ${pid}`)).stdout).toBe(
      'alive\n',
    );
  });

  it('has no descriptor of the agent', async () => {
    const { stdout } = await run(agent.channel, 'readlink /proc/$PPID/fd/3; readlink /proc/$$/fd/*');
    const [channel, ...own] = stdout.trim().split('\n');
    expect(channel).toMatch(/^socket:/);
    expect(own.length).toBeGreaterThan(2);
    expect(own).not.toContain(channel);
  });

  it.each([
    ['a missing directory', { cwd: '/nonexistent/x' }, 'CWD_MISSING'],
    ['a missing shell', { shell: '/nonexistent/sh' }, 'SHELL_MISSING'],
    ['a shell that is no program', { shell: '/etc/passwd' }, 'EACCES'],
    ['a command that is too long', { command: 'x'.repeat(200_000) }, 'E2BIG'],
    ['a NUL in the command', { command: 'a\0b' }, 'ERR_INVALID_ARG_VALUE'],
  ])('fails for %s', async (_, params, code) => {
    const { call } = beginCommand(agent.channel, 'true', params);
    await expect(call.result).rejects.toMatchObject({ kind: 'failed', code });
  });

  it('streams a gigabyte through a bounded memory', { tags: ['long'] }, async () => {
    const { call, output } = beginCommand(agent.channel, 'head -c 1073741824 /dev/zero');
    let bytes = 0;
    // What arrived is counted and dropped.
    output.stdout.push = (piece) => (bytes += piece.length);
    await call.result;
    expect(bytes).toBe(2 ** 30);
    const status = await run(agent.channel, `grep VmHWM /proc/${agent.process.pid}/status`);
    expect(Number(/(\d+) kB/.exec(status.stdout)?.[1])).toBeLessThan(160_000);
  });

  it('waits for a caller that does not read', async () => {
    const call = agent.channel.call(
      {
        method: 'execute',
        command: 'head -c 4000000 /dev/zero; echo done >&2',
        shell: '/bin/sh',
        env: {},
        cwd: null,
        stdin: false,
      },
      {
        parseHead: () => ({}),
        parseResult: () => ({}),
        onData: (stream, bytes) => {
          received[stream] += bytes.length;
          if (isReading) call.grant(bytes.length);
        },
      },
    );
    const received = { stdout: 0, stderr: 0 };
    let isReading = false;
    await expect.poll(() => received.stdout).toBe(WINDOW_BYTES);
    expect(received.stderr).toBe(0);
    isReading = true;
    call.grant(WINDOW_BYTES);
    await call.result;
    expect(received).toEqual({ stdout: 4_000_000, stderr: 5 });
  });
});

describe('the agent', () => {
  it('ends with its channel, and so do its commands', async () => {
    const agent = startAgent();
    const { call, output } = beginCommand(agent.channel, 'echo $$; exec sleep 1000');
    await expect.poll(() => output.stdout.join('')).toMatch(/\n/);
    const exited = new Promise((resolve) => agent.process.once('exit', resolve));
    agent.channel.close();
    await expect(call.result).rejects.toMatchObject({ kind: 'stopped' });
    expect(await exited).toBe(0);
    await expect.poll(() => isAlive(output.stdout.join('').trim())).toBe(false);
  });
});

/** Not one that has ended and that nobody has waited for. */
function isAlive(pid: string): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

// Commands as clients see them: output by offsets over several connections, and what their time is limited by. The agent is one
// of this process, so that each moment is held by the test.
import { describe, expect, it } from 'vitest';
import type { AgentCall } from '../../../src/box-agent/agent-call.ts';
import { WINDOW_BYTES } from '../../../src/box-agent/protocol/credit.ts';
import { AgentChannel } from '../../../src/box-host/agents/agent-channel.ts';
import { AgentError } from '../../../src/box-host/agents/agent-error.ts';
import { Command, type CommandRequest, type Output } from '../../../src/box-host/agents/command.ts';
import { createFakeAgent } from './fake-agent.ts';

const request: CommandRequest = {
  command: 'x',
  shell: 'sh',
  env: {},
  cwd: undefined,
  stdin: true,
  timeoutMs: undefined,
  idleMs: undefined,
  killOnDisconnect: false,
};
const START = { stdout: 0, stderr: 0 };
const RING = 1024 * 1024;

type Scene = {
  readonly command: Command;
  /** The agent's side of the call. */
  readonly call: AgentCall;
  end(exitCode?: number): void;
  readonly killed: Promise<void>;
};

async function begin(changes: Partial<CommandRequest> = {}, diesByKill = true, holdMs = 0): Promise<Scene> {
  const begun = Promise.withResolvers<AgentCall>();
  const ended = Promise.withResolvers<{ exitCode: number; signal: number }>();
  const killed = Promise.withResolvers<void>();
  const { stream } = createFakeAgent({
    execute: async (call) => {
      call.onKill = () => {
        killed.resolve();
        if (diesByKill) ended.resolve({ exitCode: 0, signal: 9 });
      };
      call.aborted.addEventListener('abort', () => ended.resolve({ exitCode: 0, signal: 9 }));
      await call.sendHead({ pid: 5 });
      begun.resolve(call);
      return ended.promise;
    },
  });
  const command = new Command({ ...request, ...changes }, RING, undefined, holdMs);
  void command.run(async () => new AgentChannel(stream));
  const call = await begun.promise;
  await command.started;
  return {
    command,
    call,
    end: (exitCode = 0) => ended.resolve({ exitCode, signal: 0 }),
    killed: killed.promise,
  };
}

const never = new AbortController().signal;
const textOf = (outputs: readonly Output[]): string => outputs.map(({ text }) => text).join('');

describe('a command', () => {
  it('sends its output to a client as it comes, and ends', async () => {
    const { command, call, end } = await begin();
    const following = Array.fromAsync(command.follow(START, never));
    await call.sendData('data', Buffer.from('one'));
    await call.sendData('error_data', Buffer.from('two'));
    end(3);
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 3 });
    const outputs = await following;
    expect(textOf(outputs.filter(({ stream }) => stream === 'stdout'))).toBe('one');
    expect(textOf(outputs.filter(({ stream }) => stream === 'stderr'))).toBe('two');
  });

  it('gives each client everything from its offsets on', async () => {
    const { command, call, end } = await begin();
    await call.sendData('data', Buffer.from('0123456789'));
    const first = command.follow(START, never);
    expect((await first.next()).value).toEqual({ stream: 'stdout', text: '0123456789', offset: 0 });
    await first.return();
    await call.sendData('data', Buffer.from('abc'));
    end();
    await command.ended;
    expect(await Array.fromAsync(command.follow({ stdout: 10, stderr: 0 }, never))).toEqual([
      { stream: 'stdout', text: 'abc', offset: 10 },
    ]);
    expect(await Array.fromAsync(command.follow({ stdout: 1e15, stderr: 1e15 }, never))).toEqual([]);
    expect(textOf(await Array.fromAsync(command.follow(START, never)))).toBe('0123456789abc');
  });

  it('goes on without a client and keeps the end of its output', async () => {
    const { command, call, end } = await begin();
    for (let i = 0; i < 40; i += 1)
      await call.sendData('data', Buffer.alloc(65_536, String.fromCharCode(65 + i)));
    end();
    await command.ended;
    const { text, isWhole } = command.kept('stdout');
    expect([text.length, isWhole, text.at(-1)]).toEqual([RING, false, 'h']);
    const [first] = await Array.fromAsync(command.follow(START, never));
    expect(first?.offset).toBe(40 * 65_536 - RING);
  });

  it('waits for a client that does not read, and loses nothing', async () => {
    const { command, call, end } = await begin();
    const client = command.follow(START, never);
    await call.sendData('data', Buffer.from('x'));
    await client.next();
    let sent = 1;
    const sending = (async () => {
      for (let i = 0; i < 64; i += 1) {
        await call.sendData('data', Buffer.alloc(65_536, 'y'));
        sent += 65_536;
      }
      end();
    })();
    await expect.poll(() => sent).toBeGreaterThanOrEqual(WINDOW_BYTES);
    const before = sent;
    expect(before).toBeLessThanOrEqual(RING);
    const rest = textOf(await Array.fromAsync(client));
    await sending;
    expect(rest.length).toBe(64 * 65_536);
  });

  it('is killed when its time is over', async () => {
    const { command } = await begin({ timeoutMs: 20 });
    expect(await command.ended).toEqual({ kind: 'timeout' });
  });

  it('reports the signal in its exit code', async () => {
    const { command } = await begin();
    command.kill();
    command.kill();
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 137 });
  });

  it('is killed when its last client leaves, where that was asked for', async () => {
    const { command, call } = await begin({ killOnDisconnect: true });
    const [first, second] = [command.follow(START, never), command.follow(START, never)];
    await call.sendData('data', Buffer.from('x'));
    await first.next();
    await second.next();
    await first.return();
    expect(command.isRunning).toBe(true);
    await second.return();
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 137 });
  });

  it('is killed when it had no client for its idle time, and not while it has one', async () => {
    const { command, call, killed } = await begin({ idleMs: 50 });
    const client = command.follow(START, never);
    await call.sendData('data', Buffer.from('x'));
    await client.next();
    await client.return();
    await killed;
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 137 });
  });

  it('is not killed at once for an idle time that is longer than a timer', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const { command, call, end } = await begin({ idleMs: 31_536_000_000 });
    const client = command.follow(START, never);
    await call.sendData('data', Buffer.from('x'));
    await client.next();
    await client.return();
    end();
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 0 });
    process.off('warning', onWarning);
    // Node says so of a timer that it makes one of 1 ms.
    expect(warnings).toEqual([]);
  });

  it('gets input and its end', async () => {
    const { command, call } = await begin();
    await command.write(Buffer.from('one'));
    await command.write(Buffer.from('two'));
    command.closeInput();
    await command.write(Buffer.from('late'));
    expect(Buffer.concat(await Array.fromAsync(call.input())).toString()).toBe('onetwo');
  });

  it('releases a client that leaves while there is no output', async () => {
    const { command } = await begin();
    const left = new AbortController();
    const following = Array.fromAsync(command.follow(START, left.signal));
    left.abort();
    expect(await following).toEqual([]);
    expect(command.isRunning).toBe(true);
  });

  it('whose agent ends, ends with the reason', async () => {
    const { stream } = createFakeAgent({ execute: () => new Promise(() => undefined) });
    const command = new Command(request, RING);
    void command.run(async () => new AgentChannel(stream));
    stream.destroy();
    await expect(command.started).rejects.toMatchObject({ kind: 'gone' });
    expect(await command.ended).toMatchObject({ kind: 'error', error: { kind: 'gone' } });
  });

  it('that is killed before it has begun is killed then', async () => {
    const opening = Promise.withResolvers<AgentChannel>();
    const { stream } = createFakeAgent({
      execute: async (call) => {
        const killed = new Promise<void>((resolve) => (call.onKill = resolve));
        await call.sendHead({ pid: 5 });
        await killed;
        return { exitCode: 0, signal: 9 };
      },
    });
    const command = new Command(request, RING);
    void command.run(() => opening.promise);
    command.kill();
    opening.resolve(new AgentChannel(stream));
    expect(await command.ended).toEqual({ kind: 'exit', exitCode: 137 });
  });

  it('gets input that arrived before it was started, in order, and its end', async () => {
    const opening = Promise.withResolvers<AgentChannel>();
    const received = Promise.withResolvers<string>();
    const { stream } = createFakeAgent({
      execute: async (call) => {
        await call.sendHead({ pid: 5 });
        received.resolve(Buffer.concat(await Array.fromAsync(call.input())).toString());
        return { exitCode: 0, signal: 0 };
      },
    });
    const command = new Command(request, RING);
    void command.run(() => opening.promise);
    const written = Promise.all([command.write(Buffer.from('one')), command.write(Buffer.from('two'))]);
    command.closeInput();
    opening.resolve(new AgentChannel(stream));
    await written;
    expect(await received.promise).toBe('onetwo');
    await command.ended;
  });

  it('that cannot be started takes its input all the same', async () => {
    const command = new Command(request, RING);
    const written = command.write(Buffer.from('one'));
    void command.run(async () => {
      throw new AgentError('unavailable');
    });
    await written;
    await expect(command.started).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('gets the input of two clients that write at once', async () => {
    const { command, call } = await begin();
    const bytes = 2 * WINDOW_BYTES;
    const written = [Buffer.alloc(bytes, 'a'), Buffer.alloc(bytes, 'b')].map((input) => command.write(input));
    command.closeInput();
    const all = Buffer.concat(await Array.fromAsync(call.input())).toString();
    await Promise.all(written);
    expect(all).toBe('a'.repeat(bytes) + 'b'.repeat(bytes));
  });

  it('ends a client with an error whose output was given up, and one that has all of it goes on', async () => {
    const { command, call, end } = await begin();
    const [slow, quick] = [command.follow(START, never), command.follow(START, never)];
    await call.sendData('data', Buffer.alloc(100_000, 'x'));
    await Promise.all([slow.next(), quick.next()]);
    expect((await quick.next()).value).toMatchObject({ offset: 65_536 });
    while (command.shrink());
    expect(command.oldest).toEqual({ stdout: 100_000 - 4096, stderr: 0 });
    await expect(slow.next()).rejects.toMatchObject({ kind: 'output_lost' });
    await call.sendData('data', Buffer.from('y'));
    expect((await quick.next()).value).toMatchObject({ offset: 100_000, text: 'y' });
    end();
    expect(await quick.next()).toMatchObject({ done: true });
  });

  it.each<[string, number, boolean]>([
    ['waits for a client whose connection broke', 1_000_000, true],
    ['does not wait for ever', 1, false],
  ])('%s', async (_, holdMs, isKept) => {
    const { command, call, end } = await begin({}, true, holdMs);
    const client = command.follow(START, never);
    await call.sendData('data', Buffer.from('x'));
    await client.next();
    await client.return();
    let sent = 1;
    const sending = (async () => {
      for (let i = 0; i < 64; i += 1) {
        await call.sendData('data', Buffer.alloc(65_536, 'y'));
        sent += 65_536;
      }
      end();
    })();
    await expect.poll(() => sent).toBeGreaterThan(WINDOW_BYTES);
    if (isKept) {
      const rest = textOf(await Array.fromAsync(command.follow({ stdout: 1, stderr: 0 }, never)));
      expect(rest.length).toBe(64 * 65_536);
    }
    await sending;
    await command.ended;
    expect(command.oldest.stdout).toBe(64 * 65_536 + 1 - RING);
  });
});

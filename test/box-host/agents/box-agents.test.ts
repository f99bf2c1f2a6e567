// The agents of several boxes: started by the first call, once, and ended when nothing needs them.
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Methods } from '../../../src/box-agent/agent.ts';
import { parseNothing } from '../../../src/box-agent/protocol/messages.ts';
import { AgentError } from '../../../src/box-host/agents/agent-error.ts';
import { BoxAgents, type BoxAgentsOptions } from '../../../src/box-host/agents/box-agents.ts';
import type { CommandRequest } from '../../../src/box-host/agents/command.ts';
import { createLog } from '../../../src/base/log.ts';
import { createFakeAgent } from './fake-agent.ts';

const request: CommandRequest = {
  command: 'x',
  shell: 'sh',
  env: {},
  cwd: undefined,
  stdin: false,
  timeoutMs: undefined,
  idleMs: undefined,
  killOnDisconnect: false,
};

const lines: string[] = [];
const sink = {
  write: (line: string) => void lines.push(line),
  isBlocked: false,
  dropped: 0,
  close: async () => undefined,
};
const log = createLog('info', sink);

function create(open: (box: string) => Promise<Duplex>, options: Partial<BoxAgentsOptions> = {}) {
  return new BoxAgents({ log, open, ...options });
}

describe('the agents of boxes', () => {
  it('are started once for each box, by the first call', async () => {
    const opened: string[] = [];
    const agents = create(async (box) => {
      opened.push(box);
      return createFakeAgent({}).stream;
    });
    const [first, second, other] = await Promise.all([
      agents.channel('a'),
      agents.channel('a'),
      agents.channel('b'),
    ]);
    expect(first).toBe(second);
    expect(first).not.toBe(other);
    expect(opened).toEqual(['a', 'b']);
    await agents.close();
  });

  it('are started again after they ended', async () => {
    const streams: Duplex[] = [];
    const agents = create(async () => {
      const { stream } = createFakeAgent({});
      streams.push(stream);
      return stream;
    });
    const first = await agents.channel('a');
    streams[0]?.destroy();
    await first.closed;
    const second = await agents.channel('a');
    await second.call({ method: 'write', path: '/' }, { parseResult: parseNothing }).result;
    expect(streams).toHaveLength(2);
    await agents.close();
  });

  it('end after a time without a call', async () => {
    const { stream, served } = createFakeAgent({});
    const agents = create(async () => stream, { idleMs: 20 });
    const channel = await agents.channel('a');
    await channel.call({ method: 'write', path: '/' }, { parseResult: parseNothing }).result;
    expect(await channel.closed).toMatchObject({ kind: 'stopped' });
    await served;
  });

  it('do not end while another process lives in the box, or a call runs', async () => {
    let asked = 0;
    const { stream } = createFakeAgent({ read: () => new Promise(() => undefined) }, () => {
      asked += 1;
      return asked < 4;
    });
    const agents = create(async () => stream, { idleMs: 20 });
    const channel = await agents.channel('a');
    await channel.closed;
    expect(asked).toBe(4);
    const busy = create(async () => createFakeAgent({ read: () => new Promise(() => undefined) }).stream, {
      idleMs: 1,
    });
    const used = await busy.channel('a');
    used.call({ method: 'read', path: '/' }, { parseResult: parseNothing }).result.catch(() => undefined);
    expect(await used.hasOtherProcesses()).toBe(false);
    expect(used.isClosed).toBe(false);
    await busy.close();
  });

  it('end when the box is stopped, also while they start', async () => {
    const opening = Promise.withResolvers<Duplex>();
    const agents = create((box) =>
      box === 'slow' ? opening.promise : Promise.resolve(createFakeAgent({}).stream),
    );
    const channel = await agents.channel('a');
    await agents.stop('a');
    expect(channel.isClosed).toBe(true);
    const waiting = agents.channel('slow');
    await agents.stop('slow');
    const [inside, outside] = duplexPair();
    inside.resume();
    opening.resolve(outside);
    await expect(waiting).rejects.toMatchObject({ kind: 'stopped' });
    expect(outside.destroyed).toBe(true);
  });

  it('that cannot be started are an error for the caller, and one in the log', async () => {
    const agents = create(async (box) => {
      if (box === 'stopped') throw new AgentError('stopped');
      throw new Error('no such program');
    });
    await expect(agents.channel('a')).rejects.toMatchObject({ kind: 'unavailable' });
    expect(lines.join('')).toContain('box agent not started');
    await expect(agents.channel('stopped')).rejects.toMatchObject({ kind: 'stopped' });
  });

  it('leave the output of their commands', async () => {
    const agents = create(
      async () =>
        createFakeAgent({
          execute: async (call) => {
            await call.sendHead({ pid: 1 });
            await call.sendData('data', Buffer.from('kept'));
            return { exitCode: 0, signal: 0 };
          },
        }).stream,
    );
    const [, command] = agents.commands('a').start(request, 'one', undefined);
    await command.ended;
    (await agents.channel('a')).close();
    expect(agents.commands('a').find('one')).toEqual({ kind: 'found', command });
    expect(command.kept('stdout').text).toBe('kept');
    expect(agents.commands('b').find('one').kind).toBe('unknown');
    await agents.stop('a');
    expect(agents.commands('a').find('one').kind).toBe('unknown');
  });

  it('leave nothing behind for a box that does not run', async () => {
    const agents = create(async () => {
      throw new AgentError('stopped');
    });
    expect(agents.commands('gone').find('one').kind).toBe('unknown');
    await expect(agents.channel('gone')).rejects.toMatchObject({ kind: 'stopped' });
    const [, command] = agents.commands('gone').start(request, 'one', undefined);
    expect(await command.ended).toMatchObject({ kind: 'error', error: { kind: 'stopped' } });
    expect(agents.size).toBe(0);
  });

  it('that are started too slowly fail the call and serve a later one', async () => {
    const opening = Promise.withResolvers<Duplex>();
    let opened = 0;
    const agents = create(
      () => {
        opened += 1;
        return opening.promise;
      },
      { openMs: 10 },
    );
    const [, command] = agents.commands('a').start(request, 'one', undefined);
    expect(await command.ended).toMatchObject({ kind: 'error', error: { kind: 'unavailable' } });
    await expect(agents.channel('a')).rejects.toMatchObject({ kind: 'unavailable' });
    opening.resolve(createFakeAgent({}).stream);
    const channel = await agents.channel('a');
    await channel.call({ method: 'write', path: '/' }, { parseResult: parseNothing }).result;
    expect(opened).toBe(1);
    await agents.close();
  });

  it('that die while they start fail the call, and the next one gets another', async () => {
    const streams: Duplex[] = [];
    const agents = create(async () => {
      const { stream } = createFakeAgent({ execute: () => new Promise(() => undefined) });
      streams.push(stream);
      if (streams.length === 1) stream.destroy();
      return stream;
    });
    const [, first] = agents.commands('a').start(request, 'one', undefined);
    expect(await first.ended).toMatchObject({ kind: 'error', error: { kind: 'gone' } });
    const [, second] = agents.commands('a').start(request, 'two', undefined);
    await expect.poll(() => streams.length).toBe(2);
    const written = second.write(Buffer.from('input'));
    // Between the call and its head.
    streams[1]?.destroy();
    await expect(second.started).rejects.toMatchObject({ kind: 'gone' });
    await written;
    const [, third] = agents.commands('a').start(request, 'three', undefined);
    await expect.poll(() => streams.length).toBe(3);
    expect(third.isRunning).toBe(true);
    await agents.close();
    expect(await third.ended).toMatchObject({ kind: 'error', error: { kind: 'stopped' } });
    expect(agents.size).toBe(0);
  });

  it('share the memory for output', async () => {
    const execute: Methods['execute'] = async (call) => {
      await call.sendHead({ pid: 1 });
      await call.sendData('data', Buffer.alloc(20_000, 'x'));
      return { exitCode: 0, signal: 0 };
    };
    const agents = create(async () => createFakeAgent({ execute }).stream, {
      budgetLimits: { boxBytes: 40_000, totalBytes: 70_000 },
    });
    for (const box of ['a', 'b', 'c']) await agents.commands(box).start(request, 'one', undefined)[1].ended;
    expect(['a', 'b', 'c'].map((box) => agents.commands(box).find('one').kind)).toEqual([
      'expired',
      'found',
      'found',
    ]);
    await agents.commands('c').start(request, 'two', undefined)[1].ended;
    expect(agents.commands('c').find('one').kind).toBe('expired');
    expect(agents.commands('b').find('one').kind).toBe('found');
    await agents.close();
  });
});

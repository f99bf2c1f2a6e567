// The agent's end of the channel, in this process: calls at the same time, credit, cancelling, and what a process of the box
// could write to the descriptor.
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type Methods, serveAgent } from '../../src/box-agent/agent.ts';
import { CallError } from '../../src/box-agent/call-error.ts';
import { WINDOW_BYTES } from '../../src/box-agent/protocol/credit.ts';
import { encodeFrameHead, type FrameType } from '../../src/box-agent/protocol/frame.ts';
import { encodeJson, parseNothing, parseStarted } from '../../src/box-agent/protocol/messages.ts';
import { AgentChannel } from '../../src/box-host/agents/agent-channel.ts';
import { openDataCall } from '../../src/box-host/agents/call-data.ts';

const unused = async (): Promise<object> => ({});
const nothing: Methods = {
  execute: unused,
  read: unused,
  write: unused,
  glob: unused,
  grep: unused,
  connect: unused,
};

function serve(methods: Partial<Methods>, hasOtherProcesses: () => boolean = () => false) {
  const [inside, outside] = duplexPair();
  const served = serveAgent(inside, { methods: { ...nothing, ...methods }, hasOtherProcesses });
  return { inside, outside, served };
}

const read = { method: 'read', path: '/x' } as const;
const write = { method: 'write', path: '/x' } as const;

function send(stream: Duplex, type: FrameType, id: number, payload: Buffer = Buffer.alloc(0)): void {
  stream.write(Buffer.concat([encodeFrameHead(type, id, payload.length), payload]));
}

describe('the agent', () => {
  it('runs calls at the same time and ends each by its own result', async () => {
    const waiting = Promise.withResolvers<void>();
    const { outside } = serve({
      read: async () => {
        await waiting.promise;
        return {};
      },
    });
    const channel = new AgentChannel(outside);
    const slow = channel.call(read, { parseResult: parseNothing });
    await channel.call(write, { parseResult: parseNothing }).result;
    waiting.resolve();
    expect(await slow.result).toEqual({});
    channel.close();
  });

  it('waits for credit: a caller that does not read holds the sender after a window', async () => {
    let sent = 0;
    const { outside } = serve({
      read: async (call) => {
        await call.sendHead({ pid: 1 });
        for (; sent < 64 * WINDOW_BYTES; sent += 65_536) await call.sendData('data', Buffer.alloc(65_536));
        return {};
      },
    });
    const channel = new AgentChannel(outside);
    const { call, data } = openDataCall(channel, read, {
      parseHead: parseStarted,
      parseResult: parseNothing,
    });
    await call.head;
    // The response comes behind everything that the agent has sent before.
    await channel.hasOtherProcesses();
    expect(sent).toBeLessThanOrEqual(WINDOW_BYTES);
    let received = 0;
    for await (const piece of data()) received += piece.length;
    expect(received).toBe(64 * WINDOW_BYTES);
    await call.result;
    channel.close();
  });

  it('grants input as it is consumed', async () => {
    const consume = Promise.withResolvers<void>();
    let received = 0;
    const { outside } = serve({
      write: async (call) => {
        await consume.promise;
        for await (const piece of call.input()) received += piece.length;
        return {};
      },
    });
    const channel = new AgentChannel(outside);
    const call = channel.call(write, { parseResult: parseNothing });
    let isWritten = false;
    const written = call.write(Buffer.alloc(3 * WINDOW_BYTES)).then(() => (isWritten = true));
    await channel.hasOtherProcesses();
    expect([isWritten, received]).toEqual([false, 0]);
    consume.resolve();
    await written;
    call.end();
    await call.result;
    expect(received).toBe(3 * WINDOW_BYTES);
    channel.close();
  });

  it('aborts a call that is cancelled, and all of them when the channel ends', async () => {
    const aborted: string[] = [];
    const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { outside, served } = serve({
      read: async (call) => {
        begun[0]?.resolve();
        await new Promise((resolve) => call.aborted.addEventListener('abort', resolve));
        aborted.push('read');
        throw new CallError('CANCELLED');
      },
      write: async (call) => {
        begun[1]?.resolve();
        await new Promise((resolve) => call.aborted.addEventListener('abort', resolve));
        aborted.push('write');
        return {};
      },
    });
    const channel = new AgentChannel(outside);
    const idle = new Promise<void>((resolve) => (channel.onIdle = resolve));
    const cancelled = channel.call(read, { parseResult: parseNothing });
    await begun[0]?.promise;
    cancelled.cancel();
    await expect(cancelled.result).rejects.toMatchObject({ kind: 'cancelled' });
    await idle;
    const ended = channel.call(write, { parseResult: parseNothing });
    await begun[1]?.promise;
    channel.close();
    await expect(ended.result).rejects.toMatchObject({ kind: 'stopped' });
    await served;
    expect(aborted).toEqual(['read', 'write']);
  });

  it('reports the code of an error and not its text', async () => {
    const { outside } = serve({
      read: async () => {
        throw Object.assign(new Error('a text of the box'), { code: 'ENOENT' });
      },
      write: async () => {
        throw new Error('a text of the box');
      },
    });
    const channel = new AgentChannel(outside);
    await expect(channel.call(read, { parseResult: parseNothing }).result).rejects.toMatchObject({
      code: 'ENOENT',
      message: 'No such file or directory',
    });
    await expect(channel.call(write, { parseResult: parseNothing }).result).rejects.toMatchObject({
      code: 'FAILED',
      message: 'The operation failed in the sandbox',
    });
    channel.close();
  });

  it('says whether other processes live', async () => {
    let hasOthers = true;
    const { outside } = serve({}, () => hasOthers);
    const channel = new AgentChannel(outside);
    expect(await channel.hasOtherProcesses()).toBe(true);
    hasOthers = false;
    expect(await channel.hasOtherProcesses()).toBe(false);
    channel.close();
  });

  it.each<[string, (stream: Duplex) => void]>([
    ['a result', (stream) => send(stream, 'result', 1, encodeJson({}))],
    ['a call with an even id', (stream) => send(stream, 'call', 2, encodeJson(read))],
    [
      'a call with an id of before',
      (stream) => {
        send(stream, 'call', 3, encodeJson(read));
        send(stream, 'call', 1, encodeJson(read));
      },
    ],
    ['a call that is no JSON', (stream) => send(stream, 'call', 1, Buffer.from('{{'))],
    ['garbage', (stream) => stream.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
  ])('ends on %s', async (_, write) => {
    const { outside, served } = serve({});
    outside.resume();
    write(outside);
    await served;
  });
});

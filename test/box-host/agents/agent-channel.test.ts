// The box host's end of the channel against agents that lie, flood, stop and die: every call ends with an error of its kind.
import { Duplex, duplexPair } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { WINDOW_BYTES } from '../../../src/box-agent/protocol/credit.ts';
import { encodeCredit } from '../../../src/box-agent/protocol/frame.ts';
import { parseEnded, parseNothing, parseStarted } from '../../../src/box-agent/protocol/messages.ts';
import { AgentChannel, defaultChannelLimits } from '../../../src/box-host/agents/agent-channel.ts';
import { beginCommand, run, startAgent } from '../../box-agent/spawned-agent.ts';
import { createFakeAgent, rawFrame } from './fake-agent.ts';

const params = { method: 'execute', command: 'x', shell: 'sh', env: {}, cwd: null, stdin: false } as const;
const shape = { parseHead: parseStarted, parseResult: parseEnded };
const HEAD = rawFrame('head', 1, '{"pid":2}');
const RESULT = rawFrame('result', 1, '{"exitCode":0,"signal":0}');

/** A channel whose other end is the test. */
function rawChannel(limits = defaultChannelLimits) {
  const [inside, outside] = duplexPair();
  inside.resume();
  return { inside, channel: new AgentChannel(outside, limits) };
}

describe('a channel', () => {
  it.each<[string, readonly Buffer[]]>([
    ['bytes that are no frame', [Buffer.from('HTTP/1.1 200 OK\r\n\r\n')]],
    ['a frame of a call that does not run', [rawFrame('data', 3, 'x')]],
    ['a result of a call that has ended', [HEAD, RESULT, RESULT]],
    ['data before the head', [rawFrame('data', 1, 'x')]],
    ['a result before the head', [RESULT]],
    ['a second head', [HEAD, HEAD]],
    ['data after its end', [HEAD, rawFrame('end', 1), rawFrame('data', 1, 'x')]],
    ['a second end', [HEAD, rawFrame('end', 1), rawFrame('end', 1)]],
    ['credit that was not used', [rawFrame('credit', 1, encodeCredit(1))]],
    ['a pong without a ping', [rawFrame('pong', 0, Buffer.of(1))]],
    ['a head with a lie', [rawFrame('head', 1, '{"pid":-5}')]],
    ['a failure with a text', [rawFrame('failure', 1, '{"code":"<script>"}')]],
    ['a message that is not UTF-8', [rawFrame('head', 1, Buffer.from([0x7b, 0xff, 0x7d]))]],
    [
      'more data than was granted',
      [
        HEAD,
        ...Array.from({ length: WINDOW_BYTES / 65_536 + 1 }, () => rawFrame('data', 1, Buffer.alloc(65_536))),
      ],
    ],
    [
      'more data on both streams than was granted',
      [
        HEAD,
        ...Array.from({ length: WINDOW_BYTES / 65_536 }, () =>
          rawFrame('error_data', 1, Buffer.alloc(65_536)),
        ),
        rawFrame('data', 1, 'x'),
      ],
    ],
  ])('ends on %s', async (_, frames) => {
    const { inside, channel } = rawChannel();
    const call = channel.call(params, shape);
    call.result.catch(() => undefined);
    const second = channel.call(params, shape);
    for (const frame of frames) inside.write(frame);
    expect(await channel.closed).toMatchObject({ kind: 'protocol' });
    await expect(second.result).rejects.toMatchObject({ kind: 'protocol' });
    expect(() => channel.call(params, shape)).toThrow('invalid data');
  });

  it('discards what comes for a call that was cancelled, and still counts it', async () => {
    const { inside, channel } = rawChannel();
    let received = 0;
    const call = channel.call(params, { ...shape, onData: (_, bytes) => (received += bytes.length) });
    call.cancel();
    const idle = new Promise<void>((resolve) => (channel.onIdle = resolve));
    for (const frame of [HEAD, rawFrame('data', 1, 'late'), RESULT]) inside.write(frame);
    await idle;
    expect([received, channel.isClosed]).toEqual([0, false]);
    await expect(call.result).rejects.toMatchObject({ kind: 'cancelled' });
  });

  it('runs no more calls than it may, those that were cancelled and have not ended included', () => {
    const { channel } = rawChannel({ ...defaultChannelLimits, calls: 2 });
    channel.call(params, shape).cancel();
    channel.call(params, shape);
    expect(() => channel.call(params, shape)).toThrow('Too many requests');
    channel.close();
  });

  it('that is closed fails its calls', async () => {
    const { channel } = rawChannel();
    const call = channel.call(params, shape);
    channel.close();
    await expect(call.head).rejects.toMatchObject({ kind: 'stopped' });
    await expect(call.result).rejects.toMatchObject({ kind: 'stopped' });
    expect(await channel.hasOtherProcesses()).toBe(false);
  });

  it('whose agent is silent ends', async () => {
    const { channel } = rawChannel({ ...defaultChannelLimits, silentMs: 20 });
    const call = channel.call(params, shape);
    await expect(call.result).rejects.toMatchObject({ kind: 'unresponsive' });
    expect(await channel.closed).toMatchObject({ kind: 'unresponsive' });
  });

  it('whose agent sends and does not read ends', async () => {
    const outside = new Duplex({ read: () => undefined, write: () => undefined });
    const channel = new AgentChannel(outside, { ...defaultChannelLimits, silentMs: 20 });
    const call = channel.call(params, {
      ...shape,
      onData: (_, bytes) => {
        call.grant(bytes.length);
        setImmediate(() => outside.push(rawFrame('data', 1, 'x')));
      },
    });
    outside.push(Buffer.concat([HEAD, rawFrame('data', 1, 'x')]));
    await expect(call.result).rejects.toMatchObject({ kind: 'unresponsive' });
  });

  it('begins no call while its agent has not taken what it was sent', () => {
    const outside = new Duplex({ read: () => undefined, write: () => undefined });
    const channel = new AgentChannel(outside);
    const long = { ...params, command: 'x'.repeat(1_000_000) };
    for (let calls = 0; calls < 5; calls += 1) channel.call(long, shape);
    expect(() => channel.call(params, shape)).toThrow('Too many requests');
    channel.close();
  });

  it('whose agent is silent after a ping ends', async () => {
    const { channel } = rawChannel({ ...defaultChannelLimits, silentMs: 20 });
    expect(await channel.hasOtherProcesses()).toBe(false);
    expect(await channel.closed).toMatchObject({ kind: 'unresponsive' });
  });

  it('waits as long as the agent gives a sign of life', async () => {
    const ending = Promise.withResolvers<void>();
    let pings = 0;
    const { stream } = createFakeAgent(
      {
        write: async () => {
          await ending.promise;
          return {};
        },
      },
      () => {
        pings += 1;
        if (pings === 5) ending.resolve();
        return false;
      },
    );
    const channel = new AgentChannel(stream, { ...defaultChannelLimits, silentMs: 20 });
    await channel.call({ method: 'write', path: '/' }, { parseResult: parseNothing }).result;
    channel.close();
  });

  it('does not read on when what the agent sends has taken its share of a period', async () => {
    const { inside, channel } = rawChannel({ ...defaultChannelLimits, workMs: 0 });
    let received = 0;
    const call = channel.call(params, {
      ...shape,
      onData: (_, bytes) => {
        received += bytes.length;
        call.grant(bytes.length);
      },
    });
    inside.write(HEAD);
    await call.head;
    const before = performance.now();
    // Each write is read by itself.
    for (let i = 0; i < 3; i += 1) inside.write(rawFrame('data', 1, Buffer.alloc(60_000)));
    inside.write(RESULT);
    await call.result;
    expect(received).toBe(180_000);
    expect(performance.now() - before).toBeGreaterThan(90);
    channel.close();
  });

  it('does not take a command that is too long for a frame', async () => {
    const { channel } = rawChannel();
    expect(() => channel.call({ ...params, command: 'x'.repeat(1_100_000) }, shape)).toThrow('too long');
    channel.close();
  });
});

describe('an agent', () => {
  it('that is killed fails its calls', async () => {
    await using agent = startAgent();
    const { call, output } = beginCommand(agent.channel, `echo $PPID; sleep 1000`);
    await expect.poll(() => output.stdout.join('')).toMatch(/\n/);
    expect(Number(output.stdout.join(''))).toBe(agent.process.pid);
    process.kill(agent.process.pid ?? 0, 'SIGKILL');
    await expect(call.result).rejects.toMatchObject({ kind: 'gone' });
  });

  it('that a command kills fails the calls of all', async () => {
    await using agent = startAgent();
    const other = beginCommand(agent.channel, 'sleep 1000');
    const { call } = beginCommand(agent.channel, 'kill -9 $PPID');
    await expect(call.result).rejects.toMatchObject({ kind: 'gone' });
    await expect(other.call.result).rejects.toMatchObject({ kind: 'gone' });
  });

  it('that a command stops fails its calls after a while', async () => {
    const limits = { ...defaultChannelLimits };
    await using agent = startAgent(limits);
    await run(agent.channel, 'true');
    // Its start may take longer.
    limits.silentMs = 300;
    const { call } = beginCommand(agent.channel, 'kill -STOP $PPID');
    await expect(call.result).rejects.toMatchObject({ kind: 'unresponsive' });
  });
});

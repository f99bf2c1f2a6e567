// The WebSocket of the data plane: output, input, kill, and connections that come and go while the command runs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defaultCommandLimits } from '../../../src/box-host/agents/command-table.ts';
import { createDataPlaneScene, type DataPlaneScene, ExecuteClient } from './data-plane-scene.ts';

let scene: DataPlaneScene;
beforeAll(async () => {
  scene = await createDataPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const execute = (command: string, fields: object = {}): ExecuteClient =>
  new ExecuteClient(scene, { type: 'execute', command, ...fields });

describe('a WebSocket', () => {
  it('carries a command from its start to its end', async () => {
    const client = execute('echo one; echo two >&2; exit 5', { command_id: 'whole', close_stdin: true });
    expect(await client.closed).toBe(1000);
    expect(client.messages[0]).toMatchObject({
      type: 'started',
      command_id: 'whole',
      pid: expect.any(Number),
    });
    expect(client.of('stdout')).toEqual([{ type: 'stdout', data: 'one\n', offset: 0 }]);
    expect(client.of('stderr')).toEqual([{ type: 'stderr', data: 'two\n', offset: 0 }]);
    expect(client.messages.at(-1)).toEqual({ type: 'exit', exit_code: 5 });
  });

  it('carries input and its end', async () => {
    const client = execute('cat');
    await expect.poll(() => client.of('started')).toHaveLength(1);
    client.send({ type: 'input', data: 'héllo ' });
    client.send({ type: 'input', data: 'x'.repeat(900_000) });
    client.send({ type: 'close_stdin' });
    expect(await client.closed).toBe(1000);
    expect(client.textOf('stdout')).toBe(`héllo ${'x'.repeat(900_000)}`);
  });

  it('kills the command', async () => {
    const client = execute('sleep 1000 & sleep 1000');
    await expect.poll(() => client.of('started')).toHaveLength(1);
    client.send({ type: 'kill' });
    await client.closed;
    expect(client.messages.at(-1)).toEqual({ type: 'exit', exit_code: 137 });
  });

  it('ends when the time of the command is over', async () => {
    const client = execute('sleep 1000', { timeout_seconds: 1 });
    expect(await client.closed).toBe(1000);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error_type: 'CommandTimeout' });
  });

  it('that is cut is followed by another one, from its offsets on', async () => {
    const first = execute('echo one; read x; echo two; read x; echo three', { command_id: 'cut' });
    await expect.poll(() => first.textOf('stdout')).toBe('one\n');
    first.break();
    const second = new ExecuteClient(scene, {
      type: 'reconnect',
      command_id: 'cut',
      stdout_offset: 4,
      stderr_offset: 0,
    });
    await expect.poll(() => second.of('started')).toHaveLength(1);
    second.send({ type: 'input', data: '\n' });
    await expect.poll(() => second.textOf('stdout')).toBe('two\n');
    // All clients are lost at once, as when the platform starts again.
    scene.cut();
    await second.closed;
    const third = new ExecuteClient(scene, {
      type: 'reconnect',
      command_id: 'cut',
      stdout_offset: 8,
      stderr_offset: 0,
    });
    await expect.poll(() => third.of('started')).toHaveLength(1);
    third.send({ type: 'input', data: '\n' });
    await third.closed;
    expect(third.textOf('stdout')).toBe('three\n');
    const late = new ExecuteClient(scene, { type: 'reconnect', command_id: 'cut' });
    await late.closed;
    expect([late.textOf('stdout'), late.messages.at(-1)]).toEqual([
      'one\ntwo\nthree\n',
      { type: 'exit', exit_code: 0 },
    ]);
  });

  it('with the id of a command that runs joins it', async () => {
    const [first, second] = [
      execute('echo $$; read x', { command_id: 'twice' }),
      execute('echo $$; read x', { command_id: 'twice' }),
    ];
    await expect.poll(() => [first.textOf('stdout'), second.textOf('stdout')]).not.toContain('');
    expect(first.textOf('stdout')).toBe(second.textOf('stdout'));
    first.send({ type: 'kill' });
    await Promise.all([first.closed, second.closed]);
  });

  it('that breaks kills the command where that was asked for', async () => {
    const client = execute('echo $$; exec sleep 1000', { kill_on_disconnect: true, command_id: 'bound' });
    await expect.poll(() => client.textOf('stdout')).toMatch(/\n/);
    client.break();
    const found = scene.agents.commands('box').find('bound');
    const command = found.kind === 'found' ? found.command : undefined;
    expect(await command?.ended).toEqual({ kind: 'exit', exitCode: 137 });
  });

  it('of a client that does not read stops the command, and nothing is lost', async () => {
    const client = execute('head -c 20000000 /dev/zero | tr "\\0" x; echo done >&2');
    await expect.poll(() => client.of('stdout').length).toBeGreaterThan(0);
    client.pause();
    const memory = process.memoryUsage().rss;
    const found = scene.agents.commands('box');
    expect(found).toBeDefined();
    client.resume();
    await client.closed;
    expect(client.textOf('stdout').length).toBe(20_000_000);
    expect(process.memoryUsage().rss - memory).toBeLessThan(200_000_000);
  });

  it('has text in whole characters with the offsets of its bytes', async () => {
    const client = execute("printf 'a\\303'; sleep 0.05; printf '\\251\\377b'");
    await client.closed;
    let offset = 0;
    for (const message of client.of('stdout')) {
      expect(message['offset']).toBe(offset);
      offset += Buffer.byteLength(String(message['data']));
    }
    expect(client.textOf('stdout')).toBe('aé\ufffdb');
  });

  it.each<[string, object | string, string]>([
    ['an unknown command', { type: 'reconnect', command_id: 'none' }, 'CommandNotFound'],
    ['a terminal', { type: 'execute', command: 'x', pty: true }, 'CommandError'],
    ['a missing directory', { type: 'execute', command: 'x', cwd: '/nonexistent' }, 'CommandError'],
    ['no JSON', '{', 'CommandError'],
    ['an unknown message', { type: 'launch' }, 'CommandError'],
    ['input before a command', { type: 'input', data: 'x' }, 'CommandError'],
    ['an id with a slash', { type: 'execute', command: 'x', command_id: '../x' }, 'CommandError'],
  ])('gets an error for %s', async (_, message, type) => {
    const client = new ExecuteClient(scene);
    await client.opened;
    client.send(message);
    await client.closed;
    expect(client.messages.at(-1)).toMatchObject({
      type: 'error',
      error_type: type,
      error: expect.any(String),
    });
  });

  it('of a command whose time to be kept is over has an error of its own', async () => {
    const client = execute('true', { command_id: 'short', ttl_seconds: 0 });
    await client.closed;
    await expect.poll(() => scene.agents.commands('box').find('short').kind).toBe('expired');
    const late = new ExecuteClient(scene, { type: 'reconnect', command_id: 'short' });
    await late.closed;
    expect(late.messages).toMatchObject([{ type: 'error', error_type: 'SessionExpired' }]);
  });

  it('ends on binary messages and on messages without end', async () => {
    const binary = new ExecuteClient(scene);
    await binary.opened;
    binary.sendBytes(Buffer.from('x'));
    expect(await binary.closed).toBe(1003);
    const large = new ExecuteClient(scene);
    await large.opened;
    large.send('x'.repeat(1_100_000));
    expect(await large.closed).toBe(1009);
  });

  it('of a command whose agent dies gets an error', async () => {
    const client = execute('kill -9 $PPID; sleep 1000');
    expect(await client.closed).toBe(1000);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error_type: 'CommandError' });
  });

  it('is refused where the box has too many, for a while', async () => {
    await using own = await createDataPlaneScene();
    const clients = Array.from({ length: 64 }, () => new ExecuteClient(own));
    await Promise.all(clients.map(({ opened }) => opened));
    const refused = await fetch(`${own.url}/execute/ws`, { method: 'POST' });
    expect(refused.status).toBe(426);
    const late = new ExecuteClient(own);
    expect(await late.refused).toEqual([429, '1']);
    clients[0]?.break();
    await clients[0]?.closed;
    await expect.poll(() => isOpened(new ExecuteClient(own))).toBe(true);
    for (const client of clients) client.break();
  });

  it('of a client that reads too slowly is asked to connect again', async () => {
    await using own = await createDataPlaneScene({
      sendLimits: { boxBytes: 100_000, totalBytes: 100_000 },
    });
    const slow = new ExecuteClient(own, {
      type: 'execute',
      command: 'yes',
      command_id: 'much',
    });
    await expect.poll(() => slow.of('stdout').length).toBeGreaterThan(0);
    slow.pause();
    const command = own.agents.commands('box').find('much');
    if (command.kind !== 'found') throw new Error('the command is not found');
    // The connection is given up while the command waits for it.
    await expect.poll(() => command.command.isFollowed).toBe(false);
    slow.resume();
    expect(await slow.closed).toBe(1001);
    expect(slow.messages.at(-1)).toMatchObject({ type: 'stdout' });
  });

  it('that is cut in the middle of much output loses nothing', async () => {
    const first = execute('seq 0 399999', { command_id: 'plenty' });
    await expect.poll(() => first.of('stdout').length).toBeGreaterThan(3);
    first.break();
    await first.closed;
    const found = scene.agents.commands('box').find('plenty');
    if (found.kind !== 'found') throw new Error('the command is not found');
    await expect.poll(() => found.command.isFollowed).toBe(false);
    // The command goes on until the ring is full, and waits then.
    await expect.poll(() => found.command.allocated).toBe(1024 * 1024);
    const text = first.textOf('stdout');
    const second = new ExecuteClient(scene, {
      type: 'reconnect',
      command_id: 'plenty',
      stdout_offset: Buffer.byteLength(text),
    });
    await second.closed;
    const all = `${text}${second.textOf('stdout')}`;
    expect(second.messages.at(-1)).toEqual({ type: 'exit', exit_code: 0 });
    expect(
      all
        .split('\n')
        .slice(0, -1)
        .every((line, at) => line === String(at)),
    ).toBe(true);
    expect(all.endsWith('399999\n')).toBe(true);
  });

  it('for output that is no longer kept gets an error that says where it goes on', async () => {
    await using own = await createDataPlaneScene({ commandLimits: { ...defaultCommandLimits, holdMs: 0 } });
    const command = 'head -c 3000000 /dev/zero | tr "\\0" x; read y; echo end';
    const first = new ExecuteClient(own, { type: 'execute', command, command_id: 'lost' });
    await expect.poll(() => first.of('stdout').length).toBeGreaterThan(0);
    first.break();
    const found = own.agents.commands('box').find('lost');
    if (found.kind !== 'found') throw new Error('the command is not found');
    await expect.poll(() => found.command.oldest.stdout).toBe(3_000_000 - 1024 * 1024);
    const late = new ExecuteClient(own, { type: 'reconnect', command_id: 'lost', stdout_offset: 5 });
    expect(await late.closed).toBe(1000);
    const oldest = 3_000_000 - 1024 * 1024;
    expect(late.messages).toEqual([
      {
        type: 'error',
        error_type: 'CommandError',
        error: `The output of stdout from offset 5 on is no longer kept: connect with stdout_offset ${oldest} for the rest`,
      },
    ]);
    const next = new ExecuteClient(own, { type: 'reconnect', command_id: 'lost', stdout_offset: oldest });
    await expect.poll(() => next.textOf('stdout').length).toBe(1024 * 1024);
    next.send({ type: 'kill' });
    await next.closed;
  });

  it('is refused where too many follow a command', async () => {
    const clients = Array.from({ length: 16 }, () => execute('sleep 1000', { command_id: 'followed' }));
    await expect.poll(() => clients.filter((client) => client.of('started').length === 1)).toHaveLength(16);
    const late = execute('sleep 1000', { command_id: 'followed' });
    await late.closed;
    expect(late.messages.at(-1)).toEqual({
      type: 'error',
      error_type: 'CommandError',
      error: 'Too many requests are running in the sandbox',
    });
    clients[0]?.send({ type: 'kill' });
    await Promise.all(clients.map(({ closed }) => closed));
  });

  it('may send input at once', async () => {
    await using own = await createDataPlaneScene();
    const client = new ExecuteClient(own, { type: 'execute', command: 'cat' });
    await client.opened;
    // The agent of this box is not started yet.
    client.send({ type: 'input', data: 'early' });
    client.send({ type: 'close_stdin' });
    expect(await client.closed).toBe(1000);
    expect(client.textOf('stdout')).toBe('early');
  });

  it('is asked to connect again when this process ends', async () => {
    await using own = await createDataPlaneScene();
    const client = new ExecuteClient(own, { type: 'execute', command: 'sleep 1000' });
    await expect.poll(() => client.of('started')).toHaveLength(1);
    const closing = own.plane.close(1000);
    expect(await client.closed).toBe(1001);
    await closing;
  });
});

async function isOpened(client: ExecuteClient): Promise<boolean> {
  const opened = await Promise.race([client.opened.then(() => true), client.refused.then(() => false)]);
  client.break();
  return opened;
}

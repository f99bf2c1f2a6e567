// The commands of a box: repeated requests, what is kept of those that ended, and for how long.
import { describe, expect, it } from 'vitest';
import { AgentChannel } from '../../../src/box-host/agents/agent-channel.ts';
import type { CommandRequest } from '../../../src/box-host/agents/command.ts';
import {
  type CommandLimits,
  CommandTable,
  defaultCommandLimits,
} from '../../../src/box-host/agents/command-table.ts';
import { OutputBudget } from '../../../src/box-host/agents/output-budget.ts';
import { createFakeAgent } from './fake-agent.ts';

const request = (command: string): CommandRequest => ({
  command,
  shell: 'sh',
  env: {},
  cwd: undefined,
  stdin: false,
  timeoutMs: undefined,
  idleMs: undefined,
  killOnDisconnect: false,
});

function createTable(limits: Partial<CommandLimits> = {}, budget?: OutputBudget) {
  const ends = new Map<string, () => void>();
  let started = 0;
  const { stream } = createFakeAgent({
    execute: async (call, { command }) => {
      started += 1;
      await call.sendHead({ pid: 5 });
      await call.sendData('data', Buffer.alloc(10_000, 'x'));
      await new Promise<void>((resolve) => ends.set(command, resolve));
      return { exitCode: 0, signal: 0 };
    },
  });
  const channel = new AgentChannel(stream);
  const table = new CommandTable(async () => channel, { ...defaultCommandLimits, ...limits }, budget);
  const finish = async (command: string): Promise<void> => {
    await expect.poll(() => ends.has(command)).toBe(true);
    ends.get(command)?.();
  };
  return { table, finish, started: () => started };
}

describe('the commands of a box', () => {
  it('are started once for an id', async () => {
    const { table, finish, started } = createTable();
    const [id, first] = table.start(request('a'), 'one', undefined);
    const [again, second] = table.start(request('a'), 'one', undefined);
    expect([id, again, second]).toEqual(['one', 'one', first]);
    await finish('a');
    await first.ended;
    expect(table.start(request('a'), 'one', undefined)[1]).toBe(first);
    expect(started()).toBe(1);
  });

  it('get an id of their own without one', () => {
    const { table } = createTable();
    expect(table.start(request('a'), undefined, undefined)[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('are kept for their time, and are then known to be gone', async () => {
    const { table, finish } = createTable();
    const [, command] = table.start(request('a'), 'one', 20);
    await finish('a');
    await command.ended;
    expect(table.find('one').kind).toBe('found');
    await expect.poll(() => table.find('one').kind).toBe('expired');
    expect(table.find('two').kind).toBe('unknown');
  });

  it('do not run in any number', () => {
    const { table } = createTable({ running: 2 });
    table.start(request('a'), 'a', undefined);
    table.start(request('b'), 'b', undefined);
    expect(() => table.start(request('c'), 'c', undefined)).toThrow('Too many requests');
  });

  it.each<[string, Partial<CommandLimits>]>([
    ['in number', { ended: 2 }],
    // A command of 10,000 bytes takes 16 KiB.
    ['in bytes', { endedBytes: 40_000 }],
  ])('that have ended are bounded %s, the oldest goes first', async (_, limits) => {
    const { table, finish } = createTable(limits);
    const [, running] = table.start(request('running'), 'running', undefined);
    for (const name of ['a', 'b', 'c']) {
      const [, command] = table.start(request(name), name, undefined);
      await finish(name);
      await command.ended;
    }
    const kinds = ['a', 'b', 'c', 'running'].map((id) => table.find(id).kind);
    expect(kinds).toEqual(['expired', 'found', 'found', 'found']);
    expect(running.isRunning).toBe(true);
  });

  // Each command of the table has 10,000 bytes of output, which take 16 KiB.
  it('give up output for that of others: first what ended, then what runs', async () => {
    const budget = new OutputBudget({ boxBytes: 100_000, totalBytes: 40_000 });
    const { table, finish } = createTable({}, budget);
    for (const name of ['a', 'b']) {
      const [, command] = table.start(request(name), name, undefined);
      await finish(name);
      await command.ended;
    }
    expect(budget.totalBytes).toBe(32_768);
    const [, running] = table.start(request('c'), 'c', undefined);
    await expect.poll(() => running.allocated).toBe(16_384);
    expect(['a', 'b', 'c'].map((id) => table.find(id).kind)).toEqual(['expired', 'found', 'found']);
    const other = createTable({}, budget);
    const [, second] = other.table.start(request('d'), 'd', undefined);
    await expect.poll(() => second.allocated).toBe(16_384);
    expect(table.find('b').kind).toBe('expired');
    const [, third] = other.table.start(request('e'), 'e', undefined);
    await expect.poll(() => third.allocated).toBeGreaterThan(0);
    expect(budget.totalBytes).toBeLessThanOrEqual(40_000);
    // The command that gave up its beginning says so.
    expect([running.oldest.stdout, second.oldest.stdout].some((start) => start > 0)).toBe(true);
    table.clear();
    other.table.clear();
    expect(budget.totalBytes).toBe(0);
  });

  it('that are gone count as long as a client follows them', async () => {
    const budget = new OutputBudget();
    const { table, finish } = createTable({ ended: 0 }, budget);
    const [, command] = table.start(request('a'), 'a', undefined);
    const client = command.follow({ stdout: 0, stderr: 0 }, new AbortController().signal);
    expect((await client.next()).value?.text.length).toBe(10_000);
    await finish('a');
    await command.ended;
    expect([table.find('a').kind, budget.totalBytes]).toEqual(['expired', 16_384]);
    expect((await client.next()).done).toBe(true);
    expect(budget.totalBytes).toBe(0);
  });
});

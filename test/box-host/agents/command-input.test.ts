// Input in one order, whenever it arrives.
import { describe, expect, it } from 'vitest';
import { CommandInput } from '../../../src/box-host/agents/command-input.ts';

describe('the input of a command', () => {
  it('waits for the command, and ends once', async () => {
    const input = new CommandInput();
    const seen: string[] = [];
    const first = input.write(Buffer.from('one'));
    const second = input.write(Buffer.from('two'));
    input.end();
    input.end();
    const late = input.write(Buffer.from('late'));
    expect(seen).toEqual([]);
    input.begin({
      write: async (bytes) => void seen.push(String(bytes)),
      end: () => void seen.push('end'),
    });
    await Promise.all([first, second, late]);
    expect(seen).toEqual(['one', 'two', 'end']);
  });

  it('writes one piece after the other', async () => {
    const input = new CommandInput();
    const writes: PromiseWithResolvers<void>[] = [];
    input.begin({
      write: () => {
        const write = Promise.withResolvers<void>();
        writes.push(write);
        return write.promise;
      },
      end: () => undefined,
    });
    const both = [input.write(Buffer.from('a')), input.write(Buffer.from('b'))];
    await expect.poll(() => writes.length).toBe(1);
    writes[0]?.resolve();
    await both[0];
    await expect.poll(() => writes.length).toBe(2);
    writes[1]?.resolve();
    await both[1];
  });

  it('of a command that never started is taken', async () => {
    const input = new CommandInput();
    const written = input.write(Buffer.from('one'));
    input.begin(undefined);
    await written;
  });
});

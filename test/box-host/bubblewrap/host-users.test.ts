import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HostUsers } from '../../../src/box-host/bubblewrap/host-users.ts';
import { createScratch } from '../../support/scratch.ts';

const range = { first: 3_000_000, count: 4 };

/** Box hosts with one registry, each with a directory. */
async function createMachine() {
  const scratch = await createScratch();
  const registry = join(scratch.path, 'registry');
  return {
    [Symbol.asyncDispose]: () => scratch[Symbol.asyncDispose](),
    directoryOf: (name: string) => join(scratch.path, name),
    async open(name: string, taken: readonly number[] = []) {
      const directory = join(scratch.path, name);
      await mkdir(directory, { recursive: true });
      return HostUsers.open({ range, registry, directory, taken });
    },
  };
}

describe('the host users of boxes', () => {
  it('belong to one box of the machine each, until it is removed', async () => {
    await using machine = await createMachine();
    using one = await machine.open('one');
    using other = await machine.open('other');
    expect([one.take(), other.take(), one.take(), other.take()]).toEqual(
      [0, 1, 2, 3].map((n) => 3_000_000 + n),
    );
    expect(() => one.take()).toThrow(/all 4 host users from 3000000 on belong to boxes/);
    // Only its own.
    other.release(3_000_000);
    expect(() => one.take()).toThrow(/all 4/);
    one.release(3_000_000);
    expect(other.take()).toBe(3_000_000);
  });

  it('stay with the boxes that have files, and no others, when a box host starts again', async () => {
    await using machine = await createMachine();
    using one = await machine.open('one');
    expect([one.take(), one.take()]).toEqual([3_000_000, 3_000_001]);
    // Of the second there is no box: it was killed in between.
    using again = await machine.open('one', [3_000_000]);
    using other = await machine.open('other');
    expect([other.take(), again.take()]).toEqual([3_000_001, 3_000_002]);
  });

  it('are not those of a copy of the directory', async () => {
    await using machine = await createMachine();
    using one = await machine.open('one');
    const uid = one.take();
    await expect(machine.open('copy', [uid])).rejects.toThrow(
      /host user 3000000 of a box is that of a box of .*one/,
    );
    await rm(machine.directoryOf('one'), { recursive: true });
    using copy = await machine.open('copy', [uid]);
    expect(copy.take()).toBe(3_000_001);
  });

  it('of a directory that is gone are taken last', async () => {
    await using machine = await createMachine();
    using one = await machine.open('one');
    one.take();
    await rm(machine.directoryOf('one'), { recursive: true });
    using other = await machine.open('other');
    expect([other.take(), other.take(), other.take(), other.take()]).toEqual(
      [1, 2, 3, 0].map((n) => 3_000_000 + n),
    );
  });

  it('are not those of a process that runs', async () => {
    await using scratch = await createScratch();
    const uid = process.getuid?.() ?? 0;
    using users = await HostUsers.open({
      range: { first: uid, count: 1 },
      registry: join(scratch.path, 'registry'),
      directory: scratch.path,
      taken: [],
    });
    expect(() => users.take()).toThrow(/all 1 host users/);
  });
});

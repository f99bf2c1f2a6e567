import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WorkloadUsers } from '../../../src/workload/users/workload-users.ts';
import { createScratch } from '../../support/scratch.ts';

const FIRST = 480_000;

async function createPlace() {
  const scratch = await createScratch();
  onTestFinished(() => scratch[Symbol.asyncDispose]());
  const events: string[] = [];
  const open = async (taken: readonly number[] = []) => {
    const users = await WorkloadUsers.open({
      ...{
        directory: scratch.path,
        registry: join(scratch.path, 'registry'),
        range: { first: FIRST, count: 4 },
        taken,
      },
      end: async ({ uid }) => void events.push(`end ${uid}`),
      clear: async ({ uid }) => void events.push(`clear ${uid}`),
    });
    onTestFinished(() => users.close());
    return users;
  };
  return { directory: scratch.path, events, open };
}

describe('the user of an owner', () => {
  it('is the same until it is released, also after a restart, and nobody else has it', async () => {
    const { events, open } = await createPlace();
    const users = await open();
    const [one, two] = [await users.userOf('one'), await users.userOf('two')];
    expect([one, two, users.take()].map(({ uid }) => uid)).toEqual([FIRST, FIRST + 1, FIRST + 2]);
    expect(await users.userOf('one')).toEqual(one);
    const again = await open();
    expect(await again.userOf('two')).toEqual(two);
    await again.releaseOwner('one');
    expect(events).toEqual([`clear ${FIRST}`]);
    // What it left is gone by then.
    expect(await again.userOf('three')).toEqual(one);
  });

  it('stays with its owner if something of it does not end', async () => {
    const scratch = await createScratch();
    onTestFinished(() => scratch[Symbol.asyncDispose]());
    const users = await WorkloadUsers.open({
      ...{
        directory: scratch.path,
        registry: join(scratch.path, 'registry'),
        range: { first: FIRST, count: 4 },
        taken: [],
      },
      end: async () => undefined,
      clear: () => Promise.reject(new Error('a process does not end')),
    });
    const user = await users.userOf('one');
    await expect(users.releaseOwner('one')).rejects.toThrow('does not end');
    expect(await users.userOf('one')).toEqual(user);
    expect((await users.userOf('two')).uid).not.toBe(user.uid);
    users.close();
  });

  it('stays with its owner while its file cannot be written, and is released later', async () => {
    const { directory, open } = await createPlace();
    const users = await open();
    const user = await users.userOf('one');
    // In the place of the file that replaces it.
    await mkdir(join(directory, 'users.json.new'));
    await expect(users.releaseOwner('one')).rejects.toThrow('EISDIR');
    expect([...users.owners]).toEqual(['one']);
    await rmdir(join(directory, 'users.json.new'));
    await users.releaseOwner('one');
    expect([...users.owners]).toEqual([]);
    expect(await users.userOf('two')).toEqual(user);
  });

  it('ends what has escaped when its last workload has ended', async () => {
    const { events, open } = await createPlace();
    const users = await open();
    const user = await users.userOf('one');
    await users.hold(user);
    await users.hold(user);
    await users.letGo(user);
    // Left by a process before; its workloads of now go on.
    await users.releaseLeft(user);
    expect(events).toEqual([]);
    await users.letGo(user);
    expect(events).toEqual([`end ${user.uid}`]);
  });

  it('is that of an owner', async () => {
    const { open } = await createPlace();
    await expect((await open()).hold({ uid: FIRST + 3, gid: FIRST + 3 })).rejects.toThrow(TypeError);
  });
});

it('a user of a workload of which something is left is given to nobody', async () => {
  const { events, open } = await createPlace();
  const users = await open([FIRST]);
  expect(users.take().uid).toBe(FIRST + 1);
  await users.releaseLeft({ uid: FIRST, gid: FIRST });
  expect(events).toEqual([`clear ${FIRST}`]);
  expect(users.take().uid).toBe(FIRST);
});

it('a damaged file is not replaced', async () => {
  const { directory, open } = await createPlace();
  await writeFile(join(directory, 'users.json'), '{"one": 12');
  await expect(open()).rejects.toThrow('damaged');
  await writeFile(join(directory, 'users.json'), '{"one": 0}');
  await expect(open()).rejects.toThrow('damaged');
});

// The stream of records for one reader: in order, bounded, with a count of what was dropped.
import { describe, expect, it } from 'vitest';
import { Readers, streamRecords } from '../../../src/admin/records/record-stream.ts';
import type { LiveRecord, LiveRecords } from '../../../src/admin/target.ts';

type Follower = Parameters<LiveRecords['follow']>[0];

function createScene(isWanted: (record: LiveRecord) => boolean = () => true) {
  const followers = new Set<Follower>();
  const left = new AbortController();
  const draining = new AbortController();
  const records = {
    follow(follower: Follower) {
      followers.add(follower);
      return () => void followers.delete(follower);
    },
  };
  const stream = streamRecords(records, isWanted, { left: left.signal, draining: draining.signal });
  let sent = 0;
  return {
    ...{ stream, followers, left, draining },
    /** Sends as many records, of some 300 characters. */
    send(count: number): void {
      for (let i = 0; i < count; i += 1) {
        const text = JSON.stringify({ n: sent++, path: 'x'.repeat(280) });
        for (const follower of followers) follower({ sandbox: 'default' }, () => text);
      }
    },
    async lines(): Promise<readonly Readonly<Record<string, unknown>>[]> {
      const { value } = await stream.next();
      return String(value)
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    },
  };
}

describe('a stream of records', () => {
  it('has each record as a line, several in one piece', async () => {
    const scene = createScene();
    const first = scene.lines();
    scene.send(3);
    expect((await first).map(({ n }) => n)).toEqual([0, 1, 2]);
    scene.send(1);
    expect((await scene.lines()).map(({ n }) => n)).toEqual([3]);
    await scene.stream.return(undefined);
    expect(scene.followers.size).toBe(0);
  });

  it('asks for the text of a record only if its reader wants it', async () => {
    const scene = createScene(({ rule }) => rule === 'api');
    const first = scene.lines();
    for (const follower of scene.followers) {
      follower({ sandbox: 'default', rule: 'other' }, () => {
        throw new Error('nobody wants it');
      });
      follower({ sandbox: 'default', rule: 'api' }, () => '{"n":1}');
    }
    expect(await first).toEqual([{ n: 1 }]);
    scene.left.abort();
    expect((await scene.stream.next()).done).toBe(true);
  });

  it('holds a bounded number for a reader that does not read, and says how many it has dropped', async () => {
    const scene = createScene();
    const first = scene.lines();
    scene.send(1);
    await first;
    const before = process.memoryUsage().heapUsed;
    scene.send(100_000);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
    const lines = await scene.lines();
    const notice = lines.at(-1);
    // Half a million characters of them.
    expect(lines.length).toBeGreaterThan(1_000);
    expect(lines.length).toBeLessThan(2_000);
    expect(notice).toEqual({ notice: 'dropped', count: 100_000 - (lines.length - 1) });
    // The notice stands where they were: what comes next is what comes after them.
    expect(lines.slice(0, -1).map(({ n }) => n)).toEqual(
      Array.from({ length: lines.length - 1 }, (_, i) => i + 1),
    );
    scene.send(1);
    expect((await scene.lines()).map(({ n }) => n)).toEqual([100_001]);
    scene.left.abort();
    expect((await scene.stream.next()).done).toBe(true);
  });

  it('ends with what waits and a notice when the API ends, and with nothing when its reader leaves', async () => {
    const ending = createScene();
    const last = ending.lines();
    ending.send(1);
    ending.draining.abort();
    expect((await last).map(({ n }) => n)).toEqual([0]);
    expect(await ending.lines()).toEqual([{ notice: 'ended' }]);
    expect((await ending.stream.next()).done).toBe(true);
    expect(ending.followers.size).toBe(0);
    const leaving = createScene();
    const next = leaving.stream.next();
    leaving.left.abort();
    expect((await next).done).toBe(true);
    expect(leaving.followers.size).toBe(0);
  });
});

it('so many may read at once as there are places, and one that has ended gives its place back', async () => {
  const readers = new Readers(2);
  const ended = Promise.withResolvers<void>();
  expect([readers.enter(ended.promise), readers.enter(new Promise(() => undefined))]).toEqual([true, true]);
  expect(readers.enter(Promise.resolve())).toBe(false);
  ended.resolve();
  await ended.promise;
  await Promise.resolve();
  expect(readers.enter(Promise.resolve())).toBe(true);
});

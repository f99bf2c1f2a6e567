import { describe, expect, it } from 'vitest';
import {
  type FeedPiece,
  MAX_RECENT,
  RecordFeed,
  ROWS_IN_A_TURN,
  TURN_MS,
} from '../../../src/admin/page/record-feed.ts';
import type { LiveRecord } from '../../../src/admin/target.ts';

const record: LiveRecord = { sandbox: 'default', authority: 'a.test:443', path: '/', outcome: 'forwarded' };
const ALL: (one: LiveRecord) => boolean = () => true;

function createFeed() {
  const followers = new Set<(one: LiveRecord, text: () => string) => void>();
  const state = { now: 0, isWatched: true };
  const feed = new RecordFeed({
    records: {
      follow(follower) {
        followers.add(follower);
        return () => void followers.delete(follower);
      },
    },
    isWatched: () => state.isWatched,
    now: () => state.now,
  });
  const tell = (count: number, one: LiveRecord = record): void => {
    for (let at = 0; at < count; at += 1) for (const follower of followers) follower(one, () => 'unused');
  };
  return { feed, state, tell, followers };
}

describe('the last rows', () => {
  it('are at most fifty of a turn, and two hundred in all', () => {
    const { feed, state, tell } = createFeed();
    feed.begin();
    feed.begin();
    tell(10_000);
    expect(feed.recent(ALL)).toHaveLength(ROWS_IN_A_TURN);
    for (let turn = 1; turn < 10; turn += 1) {
      state.now = turn * TURN_MS;
      tell(10_000, { ...record, path: `/${turn}` });
    }
    expect(feed.recent(ALL)).toHaveLength(MAX_RECENT);
    expect(feed.recent(({ path }) => path === '/9')).toHaveLength(ROWS_IN_A_TURN);
    expect(feed.recent(ALL).at(-1)?.[5]).toBe('/9');
  });

  it('are given up when nobody has a session', () => {
    const { feed, state, tell, followers } = createFeed();
    feed.begin();
    tell(1);
    state.isWatched = false;
    state.now = TURN_MS;
    tell(1);
    expect([feed.recent(ALL).length, followers.size]).toEqual([0, 0]);
    feed.begin();
    state.isWatched = true;
    tell(1);
    expect(feed.recent(ALL)).toHaveLength(1);
  });
});

async function nextPiece(stream: AsyncGenerator<Buffer>): Promise<FeedPiece | undefined> {
  const { value, done } = await stream.next();
  return done === true ? undefined : (JSON.parse(String(value)) as FeedPiece);
}

describe('a stream', () => {
  const ends = () => ({
    left: new AbortController(),
    draining: new AbortController(),
    isOpen: true,
  });
  const open = (
    feed: RecordFeed,
    given: ReturnType<typeof ends>,
    isWanted: (one: LiveRecord) => boolean = ALL,
  ) =>
    feed.stream(isWanted, {
      left: given.left.signal,
      draining: given.draining.signal,
      isOpen: () => given.isOpen,
    });

  it('of a flood is fifty rows in a turn, and the number of all others', async () => {
    const { feed, tell } = createFeed();
    feed.begin();
    tell(3);
    const given = ends();
    const stream = open(feed, given);
    expect((await nextPiece(stream))?.rows).toHaveLength(3);
    const second = nextPiece(stream);
    tell(10_000);
    const piece = await second;
    expect([piece?.rows.length, piece?.skipped]).toEqual([ROWS_IN_A_TURN, 10_000 - ROWS_IN_A_TURN]);
    const third = nextPiece(stream);
    tell(1);
    expect(await third).toMatchObject({ skipped: 0, rows: [{ length: 10 }] });
    given.left.abort();
    expect(await nextPiece(stream)).toBeUndefined();
  });

  it('counts what the filter wants alone', async () => {
    const { feed, tell } = createFeed();
    const stream = open(feed, ends(), ({ outcome }: LiveRecord) => outcome === 'refused');
    await nextPiece(stream);
    const next = nextPiece(stream);
    tell(500);
    tell(60, { ...record, outcome: 'refused' });
    const piece = await next;
    expect([piece?.rows.length, piece?.skipped]).toEqual([50, 10]);
    await stream.return(undefined);
  });

  it('follows nothing any more when its reader has left', async () => {
    const { feed, followers } = createFeed();
    const stream = open(feed, ends());
    await nextPiece(stream);
    expect(followers.size).toBe(1);
    await stream.return(undefined);
    expect(followers.size).toBe(0);
  });

  it.each(['session', 'sidecar'] as const)('says that the %s has ended', async (what) => {
    const { feed, followers } = createFeed();
    const given = ends();
    const stream = open(feed, given);
    await nextPiece(stream);
    if (what === 'session') given.isOpen = false;
    else given.draining.abort();
    expect(await nextPiece(stream)).toEqual({ rows: [], skipped: 0, ended: what });
    expect([await nextPiece(stream), followers.size]).toEqual([undefined, 0]);
  });
});

// A flood of records for as many open pages as there may be: each row that a page does not get is counted, and so little is sent that
// nothing waits.
import { once } from 'node:events';
import { type IncomingMessage, get } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { FeedPiece } from '../../../src/admin/page/record-feed.ts';
import type { LiveRecord, LiveRecords } from '../../../src/admin/target.ts';
import { createAdminScene } from '../admin-scene.ts';
import { HOST, PageVisitor } from './page-visitor.ts';

const PAGES = 8;
const PER_TURN = 100;
const MAX_PIECE_BYTES = 32 * 1024;

async function follow(port: number, cookie: string): Promise<IncomingMessage> {
  const headers = { Host: HOST, Cookie: cookie };
  const asked = get({ host: '127.0.0.1', port, path: '/ui/stream', headers, agent: false });
  const [response] = await once(asked, 'response');
  return response;
}

async function piecesOf(response: IncomingMessage): Promise<readonly FeedPiece[]> {
  const text = (await Array.fromAsync(response.setEncoding('utf8') as AsyncIterable<string>)).join('');
  const lines = text.split('\n').filter((line) => line !== '');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(MAX_PIECE_BYTES);
  return lines.map((line) => JSON.parse(line) as FeedPiece);
}

async function load(count: number): Promise<void> {
  const followers = new Set<Parameters<LiveRecords['follow']>[0]>();
  const records: LiveRecords = {
    outcomes: [],
    follow(follower) {
      followers.add(follower);
      return () => void followers.delete(follower);
    },
  };
  await using scene = await createAdminScene({ target: { records } });
  const visitor = new PageVisitor(scene);
  await visitor.signIn();
  const open = await Promise.all(Array.from({ length: PAGES }, () => follow(scene.port, visitor.cookie)));
  const read = open.map(piecesOf);
  const record: LiveRecord = { sandbox: 'default', authority: 'a.test:443', path: `/${'x'.repeat(180)}` };
  for (let sent = 0; sent < count; sent += PER_TURN) {
    for (let at = 0; at < PER_TURN; at += 1) for (const follower of followers) follower(record, () => '');
    await setImmediate();
  }
  const closed = scene.server.close(20_000);
  for (const pieces of await Promise.all(read)) {
    const rows = pieces.reduce((sum, piece) => sum + piece.rows.length, 0);
    const skipped = pieces.reduce((sum, piece) => sum + piece.skipped, 0);
    expect([rows + skipped, pieces.at(-1)?.ended]).toEqual([count, 'sidecar']);
    expect(skipped).toBeGreaterThan(count / 2);
  }
  await closed;
}

it('every record is a row of each page, or is counted as one that is not shown', () => load(20_000));

it('a million records too', { tags: ['long'] }, () => load(1_000_000));

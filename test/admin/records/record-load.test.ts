// Many records for as many readers as there may be, some of which read nothing: each gets every record, or the number of those it does not get, and what
// waits for them is bounded.
import { once } from 'node:events';
import { type IncomingMessage, get } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { LiveRecords } from '../../../src/admin/target.ts';
import { createAdminScene, TOKEN } from '../admin-scene.ts';

type Follower = Parameters<LiveRecords['follow']>[0];

const READERS = 6;
const STUCK = 2;
const PER_TURN = 100;
const PATH = `/${'x'.repeat(280)}`;
/** Of the buffers of as many readers, here and in the kernel, with their garbage. */
const MAX_GROWTH_BYTES = 96 * 1024 * 1024;

async function follow(port: number): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const asked = get({ host: '127.0.0.1', port, path: '/v1/records', headers, agent: false });
  const [response] = await once(asked, 'response');
  return response;
}

/** How many records came, and how many were dropped, until the end. */
async function countOf(
  response: IncomingMessage,
): Promise<{ readonly received: number; readonly dropped: number }> {
  let received = 0;
  let dropped = 0;
  let unfinished = '';
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (unfinished + piece).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines.filter((one) => one !== '')) {
      const { n, notice, count } = JSON.parse(line);
      if (n !== undefined) received += 1;
      else if (notice === 'dropped') dropped += count;
    }
  }
  return { received, dropped };
}

async function load(records: number): Promise<void> {
  const followers = new Set<Follower>();
  const follows: LiveRecords = {
    outcomes: [],
    follow(follower) {
      followers.add(follower);
      return () => void followers.delete(follower);
    },
  };
  await using scene = await createAdminScene({ target: { records: follows } });
  const reading = await Promise.all(Array.from({ length: READERS }, () => follow(scene.port)));
  const stuck = await Promise.all(Array.from({ length: STUCK }, () => follow(scene.port)));
  const counts = reading.map(countOf);
  const before = process.memoryUsage.rss();
  let most = before;
  for (let sent = 0; sent < records; sent += PER_TURN) {
    for (let i = sent; i < sent + PER_TURN; i += 1) {
      let known: string | undefined;
      const text = (): string => (known ??= JSON.stringify({ n: i, path: PATH }));
      for (const follower of followers) follower({ sandbox: 'default' }, text);
    }
    most = Math.max(most, process.memoryUsage.rss());
    await setImmediate();
  }
  expect(most - before).toBeLessThan(MAX_GROWTH_BYTES);
  const closed = scene.server.close(20_000);
  const all = await Promise.all([...counts, ...stuck.map(countOf)]);
  expect(all.map(({ received, dropped }) => received + dropped)).toEqual(all.map(() => records));
  // Those that read nothing have lost most, and nothing of that has slowed the others.
  for (const { received } of all.slice(READERS)) expect(received).toBeLessThan(records / 2);
  await closed;
  expect(followers.size).toBe(0);
}

it('every record reaches each reader or is counted, also for readers that read nothing', () => load(20_000));

it('hundreds of thousands of records too', { tags: ['long'] }, () => load(300_000));

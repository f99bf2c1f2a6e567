// The route over a socket: who may follow, how many, and how it ends.
import { once } from 'node:events';
import { get } from 'node:http';
import { expect, it } from 'vitest';
import type { LiveRecords } from '../../../src/admin/target.ts';
import type { WireClient } from '../../support/wire-client.ts';
import { type AdminScene, createAdminScene, field, request, TOKEN } from '../admin-scene.ts';

type Follower = Parameters<LiveRecords['follow']>[0];

async function createScene() {
  const followers = new Set<Follower>();
  const waiting = new Set<() => void>();
  const records: LiveRecords = {
    outcomes: ['injected', 'refused'],
    follow(follower) {
      followers.add(follower);
      for (const wake of waiting) wake();
      return () => {
        followers.delete(follower);
        for (const wake of waiting) wake();
      };
    },
  };
  const scene = await createAdminScene({ target: { records }, limits: { readers: 2 } });
  return {
    scene,
    async followed(count: number): Promise<void> {
      while (followers.size !== count) await new Promise<void>((resolve) => waiting.add(resolve));
    },
    send(status: number, text = `{"status":${status}}`): void {
      for (const follower of followers) follower({ sandbox: 'default', status }, () => text);
    },
    [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose](),
  };
}

async function follow(scene: AdminScene, query = ''): Promise<WireClient> {
  const client = await scene.connect();
  await client.send(request('GET', `/v1/records${query}`));
  return client;
}

it('records that match are streamed as JSON lines, and a shutdown ends the stream with a notice', async () => {
  await using live = await createScene();
  await using client = await follow(live.scene, '?status=4xx');
  const head = await client.readHead();
  expect(head.status).toBe(200);
  expect(head.text).toMatch(/^Content-Type: application\/x-ndjson\r$/m);
  await live.followed(1);
  live.send(200);
  live.send(404);
  const closed = live.scene.server.close(5_000);
  const { content } = await client.readBody();
  expect(content.toString()).toBe('{"status":404}\n{"notice":"ended"}\n');
  expect(await client.finished).toBe('end');
  await closed;
  expect(live.scene.records).toEqual([]);
});

it('a shutdown does not wait for somebody who reads nothing', async () => {
  await using live = await createScene();
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const asked = get({
    ...{ host: '127.0.0.1', port: live.scene.port, path: '/v1/records' },
    ...{ headers, agent: false },
  });
  const [response] = await once(asked, 'response');
  await live.followed(1);
  // More than the kernel holds for both sides.
  live.send(200, 'x'.repeat(32 * 1024 * 1024));
  await live.scene.server.close(60_000);
  response.resume();
  const [error] = await once(response, 'error');
  expect(error.code).toBe('ECONNRESET');
});

it('as many may follow as there are places, until one leaves', async () => {
  await using live = await createScene();
  const one = await follow(live.scene);
  const other = await follow(live.scene);
  await live.followed(2);
  const third = await live.scene.ask('GET', '/v1/records');
  expect([third.head.status, JSON.parse(third.text).code, field(third, 'retry-after')]).toEqual([
    ...[429, 'too_many_readers', '1'],
  ]);
  // HEAD follows nothing, and takes no place for longer than its response.
  one.reset();
  await live.followed(1);
  const head = await live.scene.ask('HEAD', '/v1/records');
  expect(head.head.status).toBe(200);
  await using again = await follow(live.scene);
  expect((await again.readHead()).status).toBe(200);
  await live.followed(2);
  await other[Symbol.asyncDispose]();
  await live.followed(1);
});

it.each([
  ['?status=all', [{ loc: ['query', 'status'], type: 'value_error' }]],
  ['?host=a&host=b', [{ loc: ['query', 'host'], msg: 'Repeated: send it once' }]],
  ['?outcome=denied&limit=1', [{ loc: ['query', 'limit'], msg: 'Unknown query parameter: remove it' }]],
])('a wrong filter is rejected: %s', async (query, issues) => {
  await using live = await createScene();
  const { head, text } = await live.scene.ask('GET', `/v1/records${query}`);
  expect([head.status, JSON.parse(text).detail]).toMatchObject([422, issues]);
});

it('nobody without the token may follow', async () => {
  await using live = await createScene();
  const { head } = await live.scene.ask('GET', '/v1/records', { fields: ['Host: localhost'] });
  expect(head.status).toBe(401);
});

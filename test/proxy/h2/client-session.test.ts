// What remains of an HTTP/2 client connection after its end: nothing. node:http2 keeps the timer of a session that it has
// destroyed, so that a session with a timeout would stay in memory for that time.
import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { ClientSession } from '../../../src/proxy/h2/client-session.ts';
import { createH2Path } from './h2-path.ts';

const CONNECTIONS = 20;

function countSessions(): number {
  return queryObjects(ClientSession, { format: 'count' });
}

it('a connection that has ended is not kept in memory for the idle timeout', { tags: ['long'] }, async () => {
  await using path = await createH2Path({ proxy: { config: { timeouts: { client_idle_ms: 600_000 } } } });
  const before = countSessions();
  for (let n = 0; n < CONNECTIONS; n += 1) {
    await using client = await path.client();
    expect((await client.request(client.fields('/'))).status).toBe(200);
  }
  // The last sockets close within a few turns. A session that is kept would remain for ten minutes.
  await expect.poll(countSessions, { timeout: 20_000 }).toBeLessThanOrEqual(before + 1);
});

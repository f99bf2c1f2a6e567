// Which connections are reused: an upstream that responded without reading a body would read it as the next request.
import { describe, expect, it } from 'vitest';
import { createDataPath, head } from '../data-path.ts';
import { type Exchange, response } from '../../support/recording-origin.ts';

const respondingWith =
  (status: number) =>
  async (exchange: Exchange): Promise<void> => {
    await exchange.readBody();
    await exchange.send(response(status, [], 'done'));
  };

describe('a connection to a host', () => {
  const rows: readonly (readonly [string, string, string, number, number])[] = [
    ['serves again after a POST that was taken', 'POST', 'hello', 201, 1],
    ['serves again after a GET without a body that was refused', 'GET', '', 404, 1],
    ['serves again after a POST without a body that was refused', 'POST', '', 500, 1],
    ['serves nobody after a GET with a body', 'GET', 'hello', 200, 2],
    ['serves nobody after a DELETE with a body', 'DELETE', 'hello', 200, 2],
    ['serves nobody after a POST with a body that was redirected', 'POST', 'hello', 301, 2],
    ['serves nobody after a PUT with a body that was refused', 'PUT', 'hello', 403, 2],
  ];
  it.each(rows)('%s', async (_, method, body, status, connections) => {
    await using path = await createDataPath({ respond: respondingWith(status) });
    const client = await path.tunnel();
    for (const target of ['/1', '/2']) {
      const length = body === '' ? [] : [`Content-Length: ${body.length}`];
      await client.send(head(`${method} ${target} HTTP/1.1`, `Host: ${path.authority}`, ...length) + body);
      expect((await client.readResponse()).head.status).toBe(status);
    }
    expect(path.origin.connections).toBe(connections);
  });
});

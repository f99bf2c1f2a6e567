// The rows of T-05 in which a message is broken off: half a body, or half a response, must not pass for a whole one, however
// its sender leaves it.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2Stream } from '../../support/h2-stream.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path } from './h2-path.ts';

describe('T-05', () => {
  it.each<readonly [string, (client: H2WireClient, stream: H2Stream) => unknown]>([
    ['a reset', (_, stream) => stream.reset('CANCEL')],
    ['a reset without an error', (_, stream) => stream.reset('NO_ERROR')],
    ['an end that is too early', (_, stream) => stream.data('', { isEnd: true })],
    ['trailers that are none', (_, stream) => stream.headers([[':path', '/x']], { isEnd: true })],
    ['a window by nothing', (_, stream) => stream.grant(0)],
    ['FIN', (client) => client.wire.end()],
    ['RST of TCP', (client) => client.wire.reset()],
  ])('half a body and %s do not pass for a whole one', async (_, breakOff) => {
    await using path = await createH2Path();
    const client = await path.client();
    const fields = client.fields('/', [['content-length', '10']], { ':method': 'POST' });
    const stream = await client.open(fields);
    await stream.data('half.');
    const request = await path.origin.stream(0);
    await breakOff(client, stream);
    expect(await request.ended()).toBe(false);
    expect(request.body.content.toString()).toBe('half.');
  });

  it.each<readonly [string, (exchange: H2Exchange) => unknown]>([
    ['a reset', ({ reset }) => reset('CANCEL')],
    ['a reset without an error', ({ reset }) => reset('NO_ERROR')],
    ['FIN', ({ connection }) => connection.end()],
    ['RST of TCP', ({ connection }) => connection.destroy()],
    ['GOAWAY and FIN', async ({ connection, goaway }) => (await goaway(), connection.end())],
    ['an end that is too early', ({ data }) => data('', { isEnd: true })],
  ])('half a response and %s do not pass for a whole one', async (how, breakOff) => {
    const gate = Promise.withResolvers<void>();
    await using path = await createH2Path({
      origin: {
        async respond(exchange) {
          await exchange.head(200, how.startsWith('an end') ? [['content-length', '10']] : []);
          await exchange.data('half.');
          await gate.promise;
          await breakOff(exchange);
        },
      },
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await client.peer.until(() => stream.length === 5 || undefined, 'half a response');
    gate.resolve();
    const response = await client.response(stream);
    expect([stream.isEnded, response.reset]).toEqual([false, expect.not.stringMatching('NO_ERROR')]);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', status: 200 });
  });

  it('half a response that waits for a window, and a reset without an error, do not pass for a whole one', async () => {
    await using path = await createH2Path({
      origin: {
        async respond({ request, head, data, reset, response }) {
          if (request.path === '/empty') return void (await response(204));
          await head(200);
          await data(Buffer.alloc(100_000));
          await reset('NO_ERROR');
        },
      },
    });
    const client = await path.client({ settings: { initial_window_size: 10 } });
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await client.peer.until(() => stream.length >= 10 || undefined, 'a window');
    expect(await client.request(client.fields('/empty'))).toMatchObject({ status: 204 });
    await stream.grant(200_000);
    await client.response(stream);
    expect(stream.isEnded).toBe(false);
  });
});

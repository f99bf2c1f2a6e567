// Heads before the response and responses that have nothing but a head: interim responses, Expect, HEAD and the statuses
// without a body; and lengths that are not those of the body.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { refusalOf } from '../../support/h2-wire-client.ts';
import type { SentField } from '../../support/hpack.ts';
import { secret } from '../data-path.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

type Script = (exchange: H2Exchange) => Promise<unknown>;

function pathOf(script: Script): Promise<H2Path> {
  return createH2Path({ origin: { respond: async (exchange) => void (await script(exchange)) } });
}

describe('interim heads', () => {
  it('pass in their order, masked, before the upstream has responded', async () => {
    const seen = Promise.withResolvers<void>();
    await using path = await pathOf(async ({ interim, response }) => {
      await interim(103, [
        ['link', '</a.css>; rel=preload'],
        ['link', '</b.css>; rel=preload'],
      ]);
      await interim(102, [['x-echo', secret]]);
      await seen.promise;
      await response(200, [], 'ok');
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    await client.peer.until(() => stream.blocks[1], 'two interim heads');
    seen.resolve();
    const { status, text, interim } = await client.response(stream);
    expect({ status, text, interim }).toEqual({
      status: 200,
      text: 'ok',
      interim: [
        {
          status: 103,
          headers: [
            ['link', '</a.css>; rel=preload'],
            ['link', '</b.css>; rel=preload'],
          ],
        },
        { status: 102, headers: [['x-echo', '*'.repeat(secret.length)]] },
      ],
    });
  });

  it('of 100 reach a client that asked for it, whose body then goes up', async () => {
    await using path = await createH2Path();
    const client = await path.client();
    const stream = await client.open(client.fields('/', [['expect', '100-continue']], { ':method': 'POST' }));
    await client.peer.until(() => stream.blocks[0], '100');
    const [request] = path.origin.streams;
    expect(request?.values('expect')).toEqual(['100-continue']);
    expect(request?.body.length).toBe(0);
    await stream.data('now', { isEnd: true });
    const { status, interim, text } = await client.response(stream);
    expect([status, interim.map((head) => head.status)]).toEqual([200, [100]]);
    expect(JSON.parse(text)).toMatchObject({ body: { length: 3 } });
  });

  it('of 100 that nobody asked for do not pass', async () => {
    await using path = await pathOf(async ({ interim, response }) => {
      await interim(100);
      await interim(103, [['link', '</a>']]);
      await response(200, [], 'ok');
    });
    const client = await path.client();
    const { interim, text } = await client.request(client.fields('/'));
    expect([interim.map(({ status }) => status), text]).toEqual([[103], 'ok']);
  });

  it('refuse what is expected: a final response instead of 100 ends the upload', async () => {
    await using path = await pathOf(async ({ response, reset }) => {
      await response(417, [], 'no');
      await reset('NO_ERROR');
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/', [['expect', '100-continue']], { ':method': 'POST' }));
    expect(await client.response(stream)).toMatchObject({ status: 417, text: 'no' });
    expect(await stream.resetOrClosed()).toBe('NO_ERROR');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 417, bytes_up: 0 });
  });

  it.each<readonly [string, readonly SentField[], number]>([
    ['of 20', [['link', '</a>']], 20],
    ['of 64 KiB', [['x-long', 'a'.repeat(30_000)]], 2],
  ])('pass up to the number %s', async (_, fields, count) => {
    await using path = await pathOf(async ({ interim, response }) => {
      for (let i = 0; i < count; i += 1) await interim(103, fields);
      await response(200, [], 'ok');
    });
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    expect([response.interim.length, response.text]).toEqual([count, 'ok']);
  });

  it.each<readonly [string, number, readonly SentField[], number, string]>([
    ['too many', 103, [['link', '</a>']], 21, 'too_many_interim_responses'],
    ['too many bytes', 103, [['x-long', 'a'.repeat(30_000)]], 3, 'too_many_interim_responses'],
  ])('of which there are %s are the end of the request: 502', async (_, status, fields, count, cause) => {
    await using path = await pathOf(async ({ interim, response }) => {
      for (let i = 0; i < count; i += 1) await interim(status, fields);
      await response(200, [], 'ok');
    });
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    expect([response.status, refusalOf(response)]).toEqual([502, 'upstream_malformed']);
    expect(await path.proxy.record(0)).toMatchObject({
      outcome: 'failed',
      reason: 'upstream_malformed',
      cause,
    });
    expect(await path.origin.streams[0]?.resetOrClosed()).toBe('CANCEL');
  });

  it('of 101 are not one: nothing of HTTP/2 is switched so', async () => {
    await using path = await pathOf(({ interim }) => interim(101, [['upgrade', 'websocket']]));
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    // The response's reader may end the stream itself: 101 has no place in HTTP/2 (RFC 9113 §8.6).
    expect(response.status === 502 || response.reset === 'PROTOCOL_ERROR').toBe(true);
    expect(response.interim).toEqual([]);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed' });
  });
});

describe('a response of a head alone', () => {
  it.each<readonly [method: string, status: number, fields: readonly SentField[]]>([
    ['HEAD', 200, [['content-length', '1000']]],
    ['HEAD', 404, []],
    ['GET', 204, []],
    ['GET', 205, []],
    [
      'GET',
      304,
      [
        ['etag', '"a"'],
        ['content-length', '1000'],
      ],
    ],
    ['GET', 200, [['content-length', '0']]],
    ['GET', 200, []],
    ['POST', 204, []],
    ['OPTIONS', 200, [['allow', 'GET']]],
  ])('to %s, %i %j, ends the stream and the record', async (method, status, fields) => {
    await using path = await pathOf(({ response }) => response(status, fields));
    const client = await path.client();
    const response = await client.request(client.fields('/', [], { ':method': method }));
    expect(response).toMatchObject({
      status,
      headers: fields,
      length: 0,
      trailers: undefined,
      reset: undefined,
    });
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status, bytes_down: 0 });
  });

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
    ['GET', 200],
  ])('to %s, %i, may have its end in a frame of its own', async (method, status) => {
    await using path = await pathOf(async ({ head, data }) => {
      await head(status);
      await data('', { isEnd: true });
    });
    const client = await path.client();
    const response = await client.request(client.fields('/', [], { ':method': method }));
    expect(response).toMatchObject({ status, length: 0, reset: undefined });
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status });
    // And its session serves on.
    expect(await client.request(client.fields('/', [], { ':method': method }))).toMatchObject({ status });
  });

  it('to a request without a body is that of a request with an empty one', async () => {
    await using path = await createH2Path();
    const client = await path.client();
    await client.request(client.fields('/', [], { ':method': 'POST' }), { body: '' });
    await client.request(client.fields('/', [['content-length', '0']], { ':method': 'POST' }));
    for (const request of path.origin.streams) expect(await request.ended()).toBe(true);
    expect(path.origin.streams.map(({ body }) => body.length)).toEqual([0, 0]);
  });
});

describe('a length that is not the body’s', () => {
  it.each([
    ['more than announced', '3', 'four', true],
    ['less than announced', '5', 'four', true],
    ['none of what was announced', '5', '', true],
  ])('in a response, %s, ends the stream with an error', async (_, length, body, isEnd) => {
    await using path = await pathOf(async ({ head, data }) => {
      await head(200, [['content-length', length]]);
      await data(body, { isEnd });
    });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    const { reset } = await client.response(stream);
    expect([stream.isEnded, reset]).toEqual([false, expect.stringMatching(/_ERROR$/)]);
    expect(reset).not.toBe('NO_ERROR');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', status: 200 });
  });

  it.each([
    ['less than announced', '5', 'four'],
    ['none of what was announced', '5', ''],
  ])('in a request, %s, never makes a whole request', async (_, length, body) => {
    await using path = await pathOf(async () => undefined);
    const client = await path.client();
    const stream = await client.open(client.fields('/', [['content-length', length]], { ':method': 'POST' }));
    const request = await path.origin.stream(0);
    await stream.data(body, { isEnd: true });
    expect(await request.ended()).toBe(false);
    const { reset } = await client.response(stream);
    expect(reset).toBe('PROTOCOL_ERROR');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
  });
});

// I12 over HTTP/2: the response to a request goes to the client that sent it, although connections are shared. Each
// request carries a nonce; the origin signs it into the head, the body and the trailers of its response. A response that
// belongs to another request, or to none, is recognized by its signature.
import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { H2Exchange, H2Request } from '../support/h2-exchange.ts';
import { dataFrame, headersFrame } from '../support/h2-frames.ts';
import { type H2Response, type H2WireClient, fieldOf } from '../support/h2-wire-client.ts';
import { encodeBlock } from '../support/hpack.ts';
import { type H2Scene, createH2Scene } from './h2-scene.ts';

function sign(nonce: string, path: string): string {
  return createHmac('sha256', 'the origin').update(`${path} ${nonce}`).digest('hex');
}

function signatureOf({ path, values }: H2Request): string {
  return sign(values('x-nonce').join(), path);
}

const turn = (): Promise<void> => new Promise((next) => setImmediate(next));
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await turn();
}

/** `/PACE/…`: sends the head, two pieces of the body and the trailers, PACE turns of the event loop apart. */
async function signed({ request, head, data, trailers }: H2Exchange): Promise<void> {
  if (!(await request.ended())) return;
  const [, pace = '0'] = request.path.split('/');
  const text = signatureOf(request);
  await turns(Number(pace));
  await head(200, [['x-signature', text]]);
  await data(text.slice(0, 20));
  await turns(Number(pace));
  await data(text.slice(20));
  await trailers([['x-signature', text]]);
}

let lastNonce = 0;

type SignedRequest = { readonly path: string; readonly nonce: string; readonly signature: string };
function signedRequest(path: string): SignedRequest {
  lastNonce += 1;
  const nonce = `n${lastNonce}`;
  return { path, nonce, signature: sign(nonce, path) };
}

function send(client: H2WireClient, { path, nonce }: SignedRequest, body?: string): Promise<H2Response> {
  const fields = client.fields(path, [['x-nonce', nonce]], body === undefined ? {} : { ':method': 'POST' });
  return client.request(fields, body === undefined ? {} : { body });
}

function expectRight(response: H2Response, { signature }: SignedRequest): void {
  expect([response.status, fieldOf(response, 'x-signature'), response.text]).toEqual([
    200,
    signature,
    signature,
  ]);
  expect(response.trailers).toEqual([['x-signature', signature]]);
}

/** The proxy itself reported no error. */
function expectNoError({ proxy }: H2Scene): void {
  expect(proxy.lines.filter(({ level }) => level === 'error')).toEqual([]);
  expect(proxy.records().filter(({ reason }) => reason === 'internal_error')).toEqual([]);
}

describe('I12 right response: a hundred streams on each of two connections', () => {
  it('I12 right response: no response is lost or swapped while other clients reset streams or disconnect', async () => {
    await using scene = await createH2Scene({
      origin: { settings: { max_concurrent_streams: 40 } },
      respond: async (exchange) => {
        const [, , how] = exchange.request.path.split('/');
        if (how === 'refused') await exchange.reset('REFUSED_STREAM');
        else if (how === 'reset') await exchange.reset('INTERNAL_ERROR');
        else if (how === 'cut') {
          await exchange.head(200, [['x-signature', signatureOf(exchange.request)]]);
          await exchange.data('half');
          await exchange.reset('INTERNAL_ERROR');
        } else await signed(exchange);
      },
    });
    const ask = async (client: H2WireClient, i: number): Promise<void> => {
      const how = ['stay', 'stay', 'stay', 'body', 'leave', 'refused', 'reset', 'cut', 'late'][i % 9];
      const request = signedRequest(`/${i % 5}/${how}`);
      if (how === 'leave' || how === 'late') {
        const stream = await client.open(client.fields(request.path, [['x-nonce', request.nonce]]), {
          isEnd: true,
        });
        if (how === 'late') await client.head(stream);
        await stream.reset();
        return;
      }
      const response = await send(client, request, how === 'body' ? 'x'.repeat(i * 100) : undefined);
      if (how === 'stay' || how === 'body') return expectRight(response, request);
      if (how === 'cut')
        expect(response).toMatchObject({ status: 200, text: 'half', reset: 'INTERNAL_ERROR' });
      else
        expect(response).toMatchObject({
          status: 0,
          reset: how === 'refused' ? 'REFUSED_STREAM' : 'INTERNAL_ERROR',
        });
    };
    for (let round = 0; round < 3; round += 1) {
      const clients = [await scene.client(), await scene.client()];
      await Promise.all(clients.flatMap((client) => Array.from({ length: 100 }, (_, i) => ask(client, i))));
      for (const client of clients) await client[Symbol.asyncDispose]();
    }
    expectNoError(scene);
    expect(scene.origin.connections.length).toBeLessThan(60);
    expect(Math.max(...scene.origin.connections.map(({ mostStreams }) => mostStreams))).toBeLessThanOrEqual(
      40,
    );
  });

  it('I12 right response: in any order of requests, responses and disconnects', async () => {
    await using scene = await createH2Scene({ respond: signed });
    const step = fc.record({ pace: fc.nat(4), how: fc.constantFrom('stay', 'stay', 'body', 'leave') });
    const scripts = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(scripts, async (several) => {
        await Promise.all(
          several.map(async (steps) => {
            await using client = await scene.client();
            await Promise.all(
              steps.map(async ({ pace, how }) => {
                const request = signedRequest(`/${pace}/${how}`);
                if (how !== 'leave')
                  return expectRight(
                    await send(client, request, how === 'body' ? 'body' : undefined),
                    request,
                  );
                const stream = await client.open(client.fields(request.path, [['x-nonce', request.nonce]]));
                await turns(pace);
                await stream.reset();
              }),
            );
          }),
        );
      }),
      { numRuns: 20 },
    );
    expectNoError(scene);
  });

  it('I12 right response: two connections never share a session while both have streams on it', async () => {
    const gate = Promise.withResolvers<void>();
    await using scene = await createH2Scene({
      async respond(exchange) {
        await gate.promise;
        await signed(exchange);
      },
    });
    const clients = [await scene.client(), await scene.client()];
    const requests = clients.flatMap((client, i) =>
      [0, 1, 2].map((n) => ({ client, request: signedRequest(`/0/${i}/${n}`) })),
    );
    const responses = requests.map(({ client, request }) => send(client, request));
    await scene.origin.stream(5);
    const owners = new Map<number, Set<string | undefined>>();
    for (const { connection, path } of scene.origin.streams)
      owners.set(connection, (owners.get(connection) ?? new Set()).add(path.split('/')[2]));
    expect([...owners.values()].map(({ size }) => size)).toEqual([1, 1]);
    gate.resolve();
    for (const [i, response] of responses.entries())
      expectRight(await response, requests[i]?.request as SignedRequest);
  });
});

describe('I12 right response: a client that is gone', () => {
  it.each(['resets its stream', 'disconnects'])(
    'I12 right response: the response to a client that %s goes to no other client',
    async (how) => {
      const gate = Promise.withResolvers<void>();
      await using scene = await createH2Scene({
        async respond(exchange) {
          if (exchange.request.path === '/0/slow') await gate.promise;
          await signed(exchange);
        },
      });
      await using leaving = await scene.client();
      const slow = signedRequest('/0/slow');
      const stream = await leaving.open(leaving.fields(slow.path, [['x-nonce', slow.nonce]]), {
        isEnd: true,
      });
      await scene.origin.stream(0);
      if (how === 'disconnects') leaving.wire.reset();
      else await stream.reset();
      await scene.proxy.record(0);
      await using staying = how === 'disconnects' ? await scene.client() : leaving;
      const fast = [signedRequest('/1/a'), signedRequest('/2/b')];
      const responses = fast.map((request) => send(staying, request));
      gate.resolve();
      for (const [i, request] of fast.entries()) expectRight((await responses[i]) as H2Response, request);
      expect([stream.blocks, stream.length]).toEqual([[], 0]);
      expectNoError(scene);
    },
  );

  it('I12 right response: a request that was sent twice gets the response of the second stream only', async () => {
    let refused: H2Exchange | undefined;
    await using scene = await createH2Scene({
      async respond(exchange) {
        if (refused !== undefined) {
          // The host responds on the stream that it refused.
          await refused.send(
            headersFrame(
              refused.request.id,
              encodeBlock([
                [':status', '200'],
                ['x-a', 'poison'],
              ]),
            ),
          );
          await refused.send(dataFrame(refused.request.id, 'poison', { isEnd: true }));
          return signed(exchange);
        }
        refused = exchange;
        await exchange.reset('REFUSED_STREAM');
      },
    });
    await using client = await scene.client();
    const request = signedRequest('/1/twice');
    expectRight(await send(client, request, 'body'), request);
    expect(JSON.stringify([...client.peer.streams.values()].map(({ blocks }) => blocks))).not.toContain(
      'poison',
    );
  });
});

describe('I12 right response: frames that belong to no request', () => {
  type Poison = (exchange: H2Exchange) => Promise<unknown> | unknown;
  const block = encodeBlock([
    [':status', '200'],
    ['x-a', 'poison'],
  ]);
  const rows: readonly (readonly [what: string, poison: Poison])[] = [
    [
      'a second head',
      ({ send: sendFrame, request }) => sendFrame(headersFrame(request.id, block, { isEnd: true })),
    ],
    [
      'more content',
      ({ send: sendFrame, request }) => sendFrame(dataFrame(request.id, 'poison', { isEnd: true })),
    ],
    [
      'a response on a stream that was never opened',
      ({ send: sendFrame }) => sendFrame(headersFrame(99, block, { isEnd: true })),
    ],
    [
      'content on a stream that was never opened',
      ({ send: sendFrame }) => sendFrame(dataFrame(99, 'poison', { isEnd: true })),
    ],
    [
      'a promise and its response',
      async ({ push, send: sendFrame }) => {
        await push('/poison');
        await sendFrame(headersFrame(2, block, { isEnd: true }));
      },
    ],
  ];
  it.each(rows)('I12 right response: %s after a complete response reaches no request', async (_, poison) => {
    await using scene = await createH2Scene({
      async respond(exchange) {
        await signed(exchange);
        if (exchange.request.path === '/0/poisoned') await poison(exchange);
      },
    });
    await using client = await scene.client();
    await using other = await scene.client();
    const [first, ...more] = ['/0/poisoned', '/0/next', '/0/last'].map(signedRequest);
    expectRight(await send(client, first as SignedRequest), first as SignedRequest);
    // A host that breaks the protocol may lose its session with all streams; other requests must not get its responses.
    for (const each of [client, other])
      for (const request of more) {
        const response = await send(each, request);
        if (response.status === 200) expectRight(response, request);
        else expect([502, 0]).toContain(response.status);
      }
    for (const { peer } of [client, other])
      for (const { blocks, content } of peer.streams.values())
        expect(JSON.stringify([blocks, content.toString()])).not.toMatch(/poison(?!ed)/);
  });

  const cuts: readonly (readonly [how: string, cut: Poison])[] = [
    ['a reset with NO_ERROR', ({ reset }) => reset('NO_ERROR')],
    ['a reset with CANCEL', ({ reset }) => reset('CANCEL')],
    ['the end of its connection', ({ connection }) => connection.end()],
    ['an RST of its connection', ({ connection }) => connection.destroy()],
  ];
  const cases = cuts.flatMap(([how, cut]) =>
    [true, false].map((isAnnounced) => [how, isAnnounced, cut] as const),
  );
  it.each(cases)(
    'I12 right response: half a response before %s (length announced: %s) does not count as complete',
    async (...row) => {
      const [, isAnnounced, cut] = row;
      await using scene = await createH2Scene({
        async respond(exchange) {
          await exchange.head(200, isAnnounced ? [['content-length', '8']] : []);
          await exchange.data('half');
          await cut(exchange);
        },
      });
      await using client = await scene.client();
      const stream = await client.open(client.fields('/'), { isEnd: true });
      const response = await client.response(stream);
      expect([response.status, stream.isEnded]).toEqual([200, false]);
      expect(response.reset).not.toBe('NO_ERROR');
      expect(await scene.proxy.record(0)).toMatchObject({ outcome: 'failed' });
    },
  );
});

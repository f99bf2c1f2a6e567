// I2 over HTTP/2, where a request may be sent twice: only a request that its host has not processed, or a safe one, is
// sent again, complete and with a limit on attempts.
import { describe, expect, it } from 'vitest';
import { type H2Exchange, echoStream } from '../support/h2-exchange.ts';
import { type H2Response, refusalOf } from '../support/h2-wire-client.ts';
import { type H2Scene, createH2Scene } from './h2-scene.ts';

type Die = (exchange: H2Exchange) => unknown;
/** The bodies of requests: none, one that is buffered for a retry, and one that is too large for that. */
const bodies = { none: undefined, short: 'x'.repeat(20_000), long: 'y'.repeat(100_000) } as const;
type Body = keyof typeof bodies;

/** The first request other than /warm is handled by `die`; all others get a response. */
function dying(die: Die, times: number): (exchange: H2Exchange) => Promise<void> {
  let left = times;
  return async (exchange) => {
    if (exchange.request.path === '/warm' || left === 0) return echoStream(exchange);
    left -= 1;
    await die(exchange);
  };
}

async function send(scene: H2Scene, method: string, body: Body, isWarm: boolean): Promise<H2Response> {
  await using client = await scene.client();
  if (isWarm) expect((await client.request(client.fields('/warm'))).status).toBe(200);
  const content = bodies[body];
  const fields = client.fields('/', [], { ':method': method });
  // Awaited because the client is disposed when this function returns.
  return await client.request(fields, content === undefined ? {} : { body: content });
}

/** Each arrival of the request: how much of its body arrived, and whether it was complete. */
function arrivalsAt({ origin }: H2Scene): readonly unknown[] {
  const arrived = origin.streams.filter(({ path }) => path === '/');
  return arrived.map(({ isEnded, body }) => [isEnded, body.length]);
}

const whole = (body: Body): unknown => [true, bodies[body]?.length ?? 0];

describe('I2 one-to-one: a request that its host has not processed', () => {
  const deaths: readonly (readonly [how: string, die: Die])[] = [
    ['a refused stream', ({ reset }) => reset('REFUSED_STREAM')],
    ['a GOAWAY that excludes it', ({ goaway, request }) => goaway(request.id - 2)],
    [
      'a GOAWAY for an error that excludes it',
      ({ goaway, request }) => goaway(request.id - 2, 'ENHANCE_YOUR_CALM'),
    ],
    [
      'a GOAWAY that excludes it, and the end of its connection',
      async ({ goaway, request, connection }) => {
        await goaway(request.id - 2);
        connection.end();
      },
    ],
  ];
  const requests: readonly (readonly [string, Body])[] = [
    ['GET', 'none'],
    ['POST', 'none'],
    ['CUSTOM', 'short'],
  ];
  const cases = deaths.flatMap(([how, die]) =>
    requests.map(([method, body]) => [method, body, how, die] as const),
  );
  it.each(cases)('I2 one-to-one: %s with body %s is sent again after %s', async (...row) => {
    const [method, body, , die] = row;
    await using scene = await createH2Scene({ respond: dying(die, 1) });
    const response = await send(scene, method, body, true);
    expect([response.status, refusalOf(response), response.reset]).toEqual([200, undefined, undefined]);
    const arrived = arrivalsAt(scene);
    expect([arrived.length, arrived.at(-1)]).toEqual([2, whole(body)]);
    expect(scene.origin.streams.filter(({ path }) => path === '/').map(({ method: sent }) => sent)).toEqual([
      method,
      method,
    ]);
  });

  it('I2 one-to-one: a fourth refusal is not followed by a fifth attempt', async () => {
    await using scene = await createH2Scene({ respond: dying(({ reset }) => reset('REFUSED_STREAM'), 9) });
    expect(await send(scene, 'POST', 'short', true)).toMatchObject({ status: 0, reset: 'REFUSED_STREAM' });
    expect(arrivalsAt(scene)).toHaveLength(4);
  });

  it('I2 one-to-one: a body that is no longer fully buffered is not sent again in part', async () => {
    const refuseLate: Die = async ({ request, connection, reset }) => {
      await connection.peer?.until(() => (request.body.length > 80_000 ? true : undefined), 'the body');
      await reset('REFUSED_STREAM');
    };
    await using scene = await createH2Scene({ respond: dying(refuseLate, 1) });
    expect(await send(scene, 'POST', 'long', true)).toMatchObject({ reset: 'REFUSED_STREAM' });
    expect(arrivalsAt(scene)).toHaveLength(1);
  });

  it('I2 one-to-one: half a body that is sent again is complete once the client has ended it', async () => {
    await using scene = await createH2Scene({ respond: dying(({ reset }) => reset('REFUSED_STREAM'), 1) });
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    await stream.data('first ');
    const again = await scene.origin.stream(1);
    expect(again.isEnded).toBe(false);
    await stream.data('second', { isEnd: true });
    expect((await client.response(stream)).status).toBe(200);
    expect(again.body.content.toString()).toBe('first second');
  });
});

describe('I2 one-to-one: a request that its host may have processed', () => {
  const deaths: readonly (readonly [how: string, die: Die, passed: readonly unknown[]])[] = [
    ['a reset with CANCEL', ({ reset }) => reset('CANCEL'), [0, 'CANCEL', undefined]],
    ['a reset with INTERNAL_ERROR', ({ reset }) => reset('INTERNAL_ERROR'), [0, 'INTERNAL_ERROR', undefined]],
    ['a reset with NO_ERROR', ({ reset }) => reset('NO_ERROR'), [0, 'INTERNAL_ERROR', undefined]],
    [
      'an RST of its connection',
      ({ connection }) => connection.destroy(),
      [502, undefined, 'upstream_closed'],
    ],
    ['a FIN of its connection', ({ connection }) => connection.end(), [502, undefined, 'upstream_closed']],
    [
      'a GOAWAY that includes it, and the end of its connection',
      async ({ goaway, connection }) => {
        await goaway();
        connection.end();
      },
      [502, undefined, 'upstream_closed'],
    ],
  ];
  const requests: readonly (readonly [string, Body])[] = [
    ['POST', 'none'],
    ['CUSTOM', 'none'],
    ['POST', 'short'],
    ['PUT', 'short'],
  ];
  const cases = deaths.flatMap(([how, die, passed]) =>
    requests.map(([method, body]) => [method, body, how, die, passed] as const),
  );
  it.each(cases)('I2 one-to-one: %s with body %s is not sent again after %s', async (...row) => {
    const [method, body, , die, passed] = row;
    await using scene = await createH2Scene({ respond: dying(die, 1) });
    const response = await send(scene, method, body, true);
    const reset = response.status === 0 ? response.reset : undefined;
    expect([response.status, reset, refusalOf(response)]).toEqual(passed);
    expect(arrivalsAt(scene)).toHaveLength(1);
  });

  it.each(['GET', 'HEAD', 'DELETE'])(
    'I2 one-to-one: %s is sent again when its session was dead',
    async (method) => {
      await using scene = await createH2Scene({
        respond: dying(({ connection }) => connection.destroy(), 1),
      });
      expect((await send(scene, method, 'none', true)).status).toBe(200);
      expect(arrivalsAt(scene)).toEqual([
        [true, 0],
        [true, 0],
      ]);
    },
  );

  it('I2 one-to-one: a request on a new session that dies is not sent again', async () => {
    await using scene = await createH2Scene({ respond: dying(({ connection }) => connection.destroy(), 1) });
    expect(refusalOf(await send(scene, 'GET', 'none', false))).toBe('upstream_closed');
    expect(arrivalsAt(scene)).toHaveLength(1);
  });

  it.each(['HEADERS', 'DATA'])(
    'I2 one-to-one: a request is not sent again after %s of its response',
    async (what) => {
      const die: Die = async ({ head, data, connection }) => {
        await head(200);
        if (what === 'DATA') await data('half');
        connection.destroy();
      };
      await using scene = await createH2Scene({ respond: dying(die, 1) });
      const response = await send(scene, 'GET', 'none', true).catch(() => undefined);
      expect([200, 502]).toContain(response?.status);
      if (response?.status === 200) expect(response.reset).not.toBeUndefined();
      expect(arrivalsAt(scene)).toHaveLength(1);
    },
  );
});

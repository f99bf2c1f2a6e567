// I5 over HTTP/2: no secret, raw or encoded, in anything that the sandbox reads from a connection outside bodies: heads,
// interim heads, trailers, resets, GOAWAY, unknown frames; nor in a log line or a record.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { findLeaks } from '../e2e/canary-search.ts';
import { textCanary } from '../e2e/canary-values.ts';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type H2Exchange, echoStream } from '../support/h2-exchange.ts';
import { encodeFrame, goawayFrame, pingFrame } from '../support/h2-frames.ts';
import { type H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import type { SentField } from '../support/hpack.ts';
import { type H2Scene, type H2SceneOptions, createH2Scene } from './h2-scene.ts';

/** Quotes and a backslash, which JSON escapes; percent signs and delimiters; bytes that base64 encodes as `+` and `/`. */
const CANARY = 'q7Zr"\\%x2Hb~>>Lw9u??+Kd4/=&Vn3sTy8e';
const bytes = Buffer.from(CANARY);
const canaries = [textCanary('the secret', CANARY)];
const leaksIn = (place: string, text: unknown): readonly string[] =>
  findLeaks(place, Buffer.from(typeof text === 'string' ? text : JSON.stringify(text)), canaries);

// The error quotes the secret, which must not leak.
const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => `quoted: ${CANARY}`);
});
vi.mock('../../src/policy/compile.ts', async (original) => breakable.compile(await original()));
beforeEach(() => broken.clear());

function createCanaryScene(options: H2SceneOptions = {}): Promise<H2Scene> {
  const headers = [{ name: 'Authorization', type: 'opaque', value: `Bearer ${CANARY}` }];
  return createH2Scene({
    rules: [{ match_hosts: ['api.test'], match_paths: ['/in/*'], headers }],
    ...options,
  });
}

/** All that the client could read: fields by name and value, content, and every other frame unchanged. */
function readBy({ peer }: H2WireClient): string {
  const streams = [...peer.streams.values()].flatMap(({ blocks, content }) => [
    content.toString('latin1'),
    ...blocks.flatMap(({ fields }) => fields.map(({ name, value }) => `${name}: ${value}`)),
  ]);
  return [...streams, ...peer.frames.map(({ payload }) => payload.toString('latin1'))].join('\n');
}

/** Sends one request, which may fail; returns all that its client could read. */
async function ask(scene: H2Scene, path = '/in/1'): Promise<string> {
  await using client = await scene.client();
  await client.request(client.fields(path, [], { ':method': 'POST' }), { body: 'x' }).catch(() => undefined);
  return readBy(client);
}

describe('I5 no leak: a host sends the secret back on a stream', () => {
  type Response = (exchange: H2Exchange) => Promise<unknown>;
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const field =
    (...fields: readonly SentField[]): Response =>
    ({ response }) =>
      response(200, fields, 'body');
  const rows: readonly (readonly [where: string, response: Response])[] = [
    ['in a field', field(['x-echo', CANARY])],
    ['in a field that is indexed', field(['x-echo', CANARY, 'indexing'])],
    ['with its scheme', field(['x-echo', `Bearer ${CANARY}`])],
    ['as a part of a URL', field(['location', `/?key=${encodeURIComponent(CANARY)}`])],
    ['in base64', field(['x-echo', base64(CANARY)])],
    ['in base64 after one byte', field(['x-echo', base64(`:${CANARY}`)])],
    ['in base64url', field(['x-echo', bytes.toString('base64url')])],
    ['in hex', field(['x-echo', bytes.toString('hex')])],
    ['in upper-case hex', field(['x-echo', bytes.toString('hex').toUpperCase()])],
    ['in JSON', field(['x-echo', JSON.stringify({ authorization: CANARY })])],
    ['in several fields', field(['x-a', CANARY], ['set-cookie', `a=${CANARY}`], ['set-cookie', CANARY])],
    ['in a field name', field([`x-${bytes.toString('hex')}`, '1'])],
    [
      'in an early hint',
      async ({ interim, response }) => {
        await interim(103, [['link', CANARY]]);
        await response(200);
      },
    ],
    [
      'in the second of two interim heads',
      async ({ interim, response }) => {
        await interim(102);
        await interim(103, [[`x-${bytes.toString('hex')}`, CANARY]]);
        await response(200);
      },
    ],
    [
      'in trailers',
      async ({ head, data, trailers }) => {
        await head(200);
        await data('body');
        await trailers([
          ['x-echo', CANARY],
          ['grpc-message', encodeURIComponent(CANARY)],
        ]);
      },
    ],
    [
      'in trailers without a body',
      async ({ head, trailers }) => {
        await head(200);
        await trailers([
          [`x-${bytes.toString('hex')}`, '1'],
          ['grpc-status', CANARY],
        ]);
      },
    ],
    [
      'in a head without a body',
      ({ head }) =>
        head(
          200,
          [
            ['grpc-status', '7'],
            ['grpc-message', CANARY],
          ],
          { isEnd: true },
        ),
    ],
    [
      'in CONTINUATION frames',
      async ({ head, data }) => {
        await head(200, [['x-echo', CANARY]], { split: 20 });
        await data('body', { isEnd: true });
      },
    ],
    [
      'in unknown frames',
      async ({ send, request, response }) => {
        await send(encodeFrame({ type: 10, stream: request.id, payload: Buffer.from(`\0\0${CANARY}`) }));
        await send(encodeFrame({ type: 99, payload: bytes }), pingFrame(bytes.subarray(0, 8)));
        await response(200);
      },
    ],
    [
      'in the last frame of its connection',
      async ({ response, goaway, connection }) => {
        await response(200);
        await goaway(undefined, 'NO_ERROR', CANARY);
        connection.end();
      },
    ],
  ];
  it.each(rows)('I5 no leak: over h2, the secret is masked %s', async (_, response) => {
    await using scene = await createCanaryScene({
      async respond(exchange) {
        await exchange.request.ended();
        await response(exchange);
      },
    });
    const injected = await ask(scene);
    expect(injected).toContain(':status: ');
    expect(scene.origin.streams[0]?.values('authorization')).toEqual([`Bearer ${CANARY}`]);
    // The host may also store the secret and send it back where nothing is injected.
    const remembered = await ask(scene, '/elsewhere');
    expect(leaksIn('the response', injected + remembered)).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: over h2, a value from a callback is masked when the host sends it back', async () => {
    await using callback = await createCallbackEndpoint({ headers: { 'X-Key': CANARY } });
    await using scene = await createCanaryScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
      async respond({ interim, head, trailers }) {
        await interim(103, [['link', CANARY]]);
        await head(302, [['location', `/${CANARY}`]]);
        await trailers([['x-echo', CANARY]]);
      },
    });
    // The value of the call, and then the cached one.
    const responses = [await ask(scene), await ask(scene)];
    expect(scene.origin.streams.map(({ values }) => values('x-key'))).toEqual([[CANARY], [CANARY]]);
    expect(leaksIn('the responses', responses.join('\n'))).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: over h2, a secret is masked where two fields each contain it', async () => {
    await using scene = await createCanaryScene({
      respond: ({ response }) =>
        void response(200, [
          ['x-a', `${CANARY}`],
          ['x-b', `${CANARY}${CANARY}`],
        ]),
    });
    expect(leaksIn('the response', await ask(scene))).toEqual([]);
  });

  it('I5 no leak: over h2, each part of a credential is masked by itself, also in character references', async () => {
    const cookies = { name: 'Cookie', type: 'opaque', value: `sid=${CANARY}; view=full` };
    const references = [...CANARY].map((char) => `&#${char.charCodeAt(0)};`).join('');
    await using scene = await createCanaryScene({
      rules: [{ match_hosts: ['api.test'], headers: [cookies] }],
      respond: ({ response }) =>
        void response(200, [
          ['x-echo', CANARY],
          ['x-page', references],
        ]),
    });
    const text = await ask(scene);
    expect(text).toContain(':status: 200');
    expect(leaksIn('the response', text)).toEqual([]);
    expect(text).not.toContain('&#');
  });
});

describe('I5 no leak: scrubbed bodies on a stream', () => {
  const headers = [{ name: 'Authorization', type: 'opaque', value: `Bearer ${CANARY}` }];
  const rule = { match_hosts: ['api.test'], match_paths: ['/in/*'], headers };
  const byRule = { rules: [{ ...rule, scrub: 'body' }] };
  const byOperator = { config: () => ({ scrub: 'body' }) };
  const whole =
    (body: string): H2SceneOptions['respond'] =>
    async ({ response }) =>
      void (await response(200, [], body));
  const rows: readonly (readonly [string, H2SceneOptions['respond'], H2SceneOptions])[] = [
    ['unencoded, by the rule', whole(CANARY), byRule],
    ['unencoded, by the operator', whole(CANARY), byOperator],
    ['in a URL', whole(encodeURIComponent(CANARY)), byRule],
    [
      'with every byte escaped',
      whole([...CANARY].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('')),
      byRule,
    ],
    [
      'in character references',
      whole([...CANARY].map((char) => `&#x${char.charCodeAt(0).toString(16)};`).join('')),
      byRule,
    ],
    ['in base64', whole(Buffer.from(`user:${CANARY}`).toString('base64')), byRule],
    [
      'in one-byte frames',
      async ({ head, data }) => {
        await head(200);
        for (const byte of CANARY) await data(byte);
        await data('', { isEnd: true });
      },
      byRule,
    ],
    [
      'before trailers',
      async ({ head, data, trailers }) => {
        await head(200);
        await data(CANARY);
        await trailers([['x-echo', CANARY]]);
      },
      byOperator,
    ],
  ];
  it.each(rows)('I5 no leak: over h2, the secret in a body is masked %s', async (_, respond, options) => {
    await using scene = await createCanaryScene({ ...(respond ? { respond } : {}), ...options });
    const [injected, remembered] = [await ask(scene), await ask(scene, '/elsewhere')];
    expect(injected).toMatch(/\*{8}/);
    expect(leaksIn('the response', injected + remembered)).toEqual([]);
    expect(await scene.proxy.record(1)).toMatchObject({ outcome: 'forwarded', scrubbed: 1 });
  });

  it('I5 no leak: over h2, a content-coded body or message is rejected', async () => {
    for (const name of ['content-encoding', 'grpc-encoding']) {
      const respond = async ({ response }: H2Exchange): Promise<void> =>
        void (await response(200, [[name, 'x-plain']], CANARY));
      await using scene = await createCanaryScene({ respond, ...byRule });
      expect(leaksIn('the response', await ask(scene))).toEqual([]);
      expect(await scene.proxy.record(0)).toMatchObject({ reason: 'scrub_impossible', cause: 'encoded' });
    }
  });

  it('I5 no leak: over h2, a client cannot request a part of a body', async () => {
    await using scene = await createCanaryScene({ respond: whole('x'), ...byRule });
    await using client = await scene.client();
    const asks = [
      ['range', 'bytes=0-7'],
      ['accept-encoding', 'gzip'],
    ] as const;
    await client.request(client.fields('/in/1', asks));
    expect(scene.origin.streams[0]?.values('range')).toEqual([]);
    expect(scene.origin.streams[0]?.values('accept-encoding')).toEqual([]);
  });

  it('I5 no leak: over h2, a body that is truncated inside the secret does not disclose it', async () => {
    const respond = async ({ head, data, reset }: H2Exchange): Promise<void> => {
      await head(200);
      await data(CANARY.slice(0, -1));
      await reset();
    };
    await using scene = await createCanaryScene({ respond, ...byRule });
    expect(await ask(scene)).not.toContain(CANARY.slice(0, 4));
  });
});

describe('I5 no leak: failures over HTTP/2', () => {
  type Row = readonly [how: string, respond: (exchange: H2Exchange) => unknown];
  const rows: readonly Row[] = [
    [
      'an invalid head',
      ({ send, request }) =>
        send(encodeFrame({ type: 'HEADERS', flags: 5, stream: request.id, payload: bytes })),
    ],
    ['an invalid status', ({ head }) => head(99, [['x-a', CANARY]])],
    [
      'an invalid field',
      ({ response }) =>
        response(200, [
          [CANARY, CANARY],
          ['x a', CANARY],
        ]),
    ],
    [
      'too many interim heads',
      async ({ interim }) => {
        for (let i = 0; i < 30; i += 1) await interim(103, [['link', CANARY]]);
      },
    ],
    ['a request for proxy credentials', ({ response }) => response(407, [['proxy-authenticate', CANARY]])],
    ['a reset', ({ reset }) => reset('ENHANCE_YOUR_CALM')],
    ['GOAWAY with a reason', ({ send, request }) => send(goawayFrame(request.id, 'INTERNAL_ERROR', CANARY))],
    ['a push promise', ({ push }) => push(`/${CANARY}`)],
    [
      'a head, and the end of its connection',
      async ({ head, connection }) => {
        await head(200, [['x-a', CANARY]]);
        connection.destroy();
      },
    ],
    [
      'bytes that are not frames',
      async ({ send, connection }) => {
        await send(CANARY.repeat(9));
        connection.end();
      },
    ],
  ];
  it.each(rows)('I5 no leak: over h2, nothing leaks if the response is %s', async (_, respond) => {
    await using scene = await createCanaryScene({ respond: (exchange) => void respond(exchange) });
    const response = await ask(scene);
    expect(scene.origin.streams[0]?.values('authorization')).toEqual([`Bearer ${CANARY}`]);
    expect(leaksIn('what was read', response)).toEqual([]);
    expect(response).not.toContain(CANARY.slice(0, 4));
    await scene.proxy.record(0);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: over h2, the record of an injection contains the name of the header but not its value', async () => {
    await using scene = await createCanaryScene({ respond: echoStream });
    await using client = await scene.client();
    expect((await client.request(client.fields('/in/1', [['authorization', CANARY]]))).status).toBe(200);
    expect(await scene.proxy.record(0)).toMatchObject({ outcome: 'injected', injected: ['Authorization'] });
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });

  it('I5 no leak: over h2, an internal error is logged with its kind and place, without its message', async () => {
    await using scene = await createCanaryScene();
    await using client = await scene.client();
    broken.add('decide');
    const response = await client.request(client.fields('/in/1'));
    expect([response.status, refusalOf(response)]).toEqual([500, 'internal_error']);
    await scene.proxy.record(0);
    expect(scene.proxy.lines).toContainEqual(expect.objectContaining({ error: 'TypeError' }));
    expect(leaksIn('what was read', readBy(client))).toEqual([]);
    expect(leaksIn('the log', scene.proxy.lines)).toEqual([]);
  });
});

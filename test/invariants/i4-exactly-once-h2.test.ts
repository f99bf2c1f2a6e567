// I4 over HTTP/2: whatever the agent sent, the origin gets the injected field exactly once, with exactly the resolved
// value, never indexed. Names are compared as the most lenient origin does: `_` equals `-`.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type H2Request, echoStream } from '../support/h2-exchange.ts';
import { encodeBlock, indexed, literal, type SentField } from '../support/hpack.ts';
import { headersFrame } from '../support/h2-frames.ts';
import { runs } from '../support/run-size.ts';
import { INJECTED, SECRET, bearerRule } from './credential-scene.ts';
import { arrival, bytesAt, createH2Scene } from './h2-scene.ts';

const KEY = 'X-Api-Key';
const PLAIN = 'a, b; {c}="d"\t\\~';
const headers = [
  { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
  { name: KEY, type: 'plaintext', value: PLAIN },
];
const rules = [bearerRule('api.test', { headers })];
const both = ['authorization', 'x-api-key'];

/** The values that the origin got under any spelling of a name. */
function valuesOf(request: H2Request | undefined, name: string): readonly string[] | undefined {
  const fold = (text: string): string => text.toLowerCase().replaceAll('_', '-');
  return request?.headers.filter(([key]) => fold(key) === fold(name)).map(([, value]) => value);
}

function expectOnce(request: H2Request | undefined): void {
  expect(valuesOf(request, 'Authorization')).toEqual([INJECTED]);
  expect(valuesOf(request, KEY)).toEqual([PLAIN]);
  // The injected field is the last: an origin that uses the last of two fields, or the first, uses the same one.
  expect(request?.headers.slice(-2)).toEqual([
    ['authorization', INJECTED],
    ['x-api-key', PLAIN],
  ]);
  // nghttp2 itself does not index short cookies.
  expect(request?.neverIndexed.filter((name) => name !== 'cookie')).toEqual(both);
}

describe('I4 exactly once: the agent sends the same name over HTTP/2', () => {
  const rows: readonly (readonly [why: string, fields: readonly SentField[]])[] = [
    ['nothing', []],
    ['the field', [['authorization', 'Bearer AGENT']]],
    [
      'the field twice',
      [
        ['authorization', 'one'],
        ['authorization', 'two'],
      ],
    ],
    [
      'an underscore for a hyphen',
      [
        ['x_api_key', 'one'],
        ['x-api_key', 'two'],
        ['x_api-key', 'three'],
      ],
    ],
    [
      'the injected value itself',
      [
        ['authorization', INJECTED],
        ['x-api-key', PLAIN],
      ],
    ],
    ['an empty value', [['x-api-key', '']]],
    ['an index into the static table', [indexed(23)]],
    [
      'a field that enters the dynamic table, and its index',
      [literal('authorization', 'AGENT', 'indexing'), indexed(62)],
    ],
    ['a never-indexed field', [['authorization', 'AGENT', 'never']]],
    [
      'a trailer announcement',
      [
        ['trailer', 'authorization'],
        ['te', 'trailers'],
      ],
    ],
    [
      'proxy fields with a similar name',
      [
        ['proxy-authorization', 'Basic eA=='],
        ['proxy-authenticate', 'x'],
        ['proxy-foo', 'y'],
      ],
    ],
    [
      'the field first and last',
      [
        ['authorization', 'first'],
        ['a', '1'],
        ['b', '2'],
        ['authorization', 'last'],
      ],
    ],
  ];
  it.each(rows)('I4 exactly once: over h2, %s', async (_, fields) => {
    await using scene = await createH2Scene({ rules });
    const { response, request } = await arrival(scene, fields);
    expect(response.status).toBe(200);
    expectOnce(request);
    const ours = ['trailer', 'proxy-authorization', 'proxy-authenticate', 'proxy-foo'];
    for (const name of ours) expect(valuesOf(request, name)).toEqual([]);
  });

  const broken: readonly (readonly [why: string, field: SentField])[] = [
    ['capitals', ['Authorization', 'AGENT']],
    ['a nomination in Connection', ['connection', 'authorization']],
    ['another upgrade', ['upgrade', 'h2c']],
  ];
  it.each(broken)('I4 exactly once: over h2, %s resets the stream', async (_, field) => {
    await using scene = await createH2Scene({ rules });
    const { response } = await arrival(scene, [field]);
    expect(response.reset).toBe('PROTOCOL_ERROR');
    expect(bytesAt(scene)).toBe('');
  });

  it.each(['authorization ', 'authorization\0', ' authorization', 'authorization\xa0', 'authorization:'])(
    'I4 exactly once: over h2, the name %j reaches no origin',
    async (name) => {
      await using scene = await createH2Scene({ rules });
      const { response, request } = await arrival(scene, [[name, 'AGENT']]);
      expect(response.status).toBe(200);
      expectOnce(request);
      expect(request?.headers.filter(([, value]) => value === 'AGENT')).toEqual([]);
    },
  );

  it('I4 exactly once: over h2, the agent sends it in a trailer', async () => {
    await using scene = await createH2Scene({ rules });
    await using client = await scene.client();
    const trailers: SentField[] = [
      ['authorization', 'AGENT'],
      ['x_api_key', 'AGENT'],
      ['x-sum', '1'],
    ];
    const fields = client.fields('/', [['trailer', 'authorization']], { ':method': 'POST' });
    expect(await client.request(fields, { body: 'x', trailers })).toMatchObject({ status: 200 });
    const [request] = scene.origin.streams;
    expectOnce(request);
    expect(request).toMatchObject({ trailers: undefined, isEnded: true, body: { length: 1 } });
  });

  it('I4 exactly once: over h2, the agent sends it in CONTINUATION frames', async () => {
    await using scene = await createH2Scene({ rules });
    await using client = await scene.client();
    const block = encodeBlock(client.fields('/', [['authorization', 'AGENT']]));
    const stream = client.peer.stream(client.nextId());
    await client.send(headersFrame(stream.id, block, { isEnd: true, split: 20 }));
    expect((await client.response(stream)).status).toBe(200);
    expectOnce(scene.origin.streams[0]);
  });

  it('I4 exactly once: over h2, the agent sends it in any spelling, order and number', async () => {
    await using scene = await createH2Scene({ rules });
    await using client = await scene.client();
    const spelling = (name: string): fc.Arbitrary<string> =>
      fc
        .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
        .map((flips) => [...name].map((letter, i) => (letter === '-' && flips[i] ? '_' : letter)).join(''));
    const others = ['authorization2', 'x-authorization', 'xapikey', 'x-api-key-', 'cookie', 'te'];
    const name = fc.oneof(spelling('authorization'), spelling('x-api-key'), fc.constantFrom(...others));
    const value = fc.constantFrom('AGENT', '', 'authorization', 'x_api_key', 'a,b');
    const how = fc.constantFrom('plain', 'indexing', 'never');
    const lines = fc.array(fc.tuple(name, value, how), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lines, async (sent) => {
        const before = scene.origin.streams.length;
        const fields = sent.map(
          ([key, text, form]) => [key, key === 'te' ? 'trailers' : text, form] as const,
        );
        expect((await client.request(client.fields('/', fields))).status).toBe(200);
        expectOnce(scene.origin.streams[before]);
      }),
      { numRuns: runs(200, 40) },
    );
  });
});

describe('I4 exactly once: on every kind of stream', () => {
  it('I4 exactly once: on every stream of a connection, one after another and concurrently', async () => {
    await using scene = await createH2Scene({ rules });
    await using client = await scene.client();
    const ask = (i: number): Promise<unknown> =>
      client.request(client.fields(`/${i}`, [['authorization', String(i)]]));
    for (let i = 0; i < 3; i += 1) await ask(i);
    await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i)));
    expect(scene.origin.streams).toHaveLength(23);
    for (const request of scene.origin.streams) expectOnce(request);
  });

  it('I4 exactly once: cookie crumbs stay separate, and an injected cookie is the only one', async () => {
    const cookie = { name: 'Cookie', type: 'workspace_secret', value: 'session={TOKEN}' };
    const crumbs: readonly SentField[] = [
      ['cookie', 'a=1'],
      ['cookie', 'session=AGENT'],
      ['cookie', 'b=2'],
    ];
    await using plain = await createH2Scene({ rules });
    const { request: withCrumbs } = await arrival(plain, crumbs);
    expect(valuesOf(withCrumbs, 'cookie')).toEqual(['a=1', 'session=AGENT', 'b=2']);
    expectOnce(withCrumbs);
    await using scene = await createH2Scene({ rules: [bearerRule('api.test', { headers: [cookie] })] });
    const { request } = await arrival(scene, crumbs);
    expect(valuesOf(request, 'cookie')).toEqual([`session=${SECRET}`]);
    expect(request?.neverIndexed).toEqual(['cookie']);
  });

  it('I4 exactly once: with a body, Expect and TE: trailers', async () => {
    await using scene = await createH2Scene({ rules });
    await using client = await scene.client();
    const extra: SentField[] = [
      ['expect', '100-continue'],
      ['te', 'trailers'],
      ['authorization', 'AGENT'],
    ];
    const fields = client.fields('/', extra, { ':method': 'POST' });
    expect((await client.request(fields, { body: 'x' })).status).toBe(200);
    expectOnce(scene.origin.streams[0]);
    expect(valuesOf(scene.origin.streams[0], 'te')).toEqual(['trailers']);
  });

  it('I4 exactly once: on the second attempt after a refused stream', async () => {
    await using scene = await createH2Scene({
      rules,
      respond: (exchange) =>
        exchange.request.id === 1 ? void exchange.reset('REFUSED_STREAM') : echoStream(exchange),
    });
    const extra: SentField[] = [
      ['authorization', 'AGENT'],
      ['x_api_key', 'AGENT'],
    ];
    expect((await arrival(scene, extra)).response.status).toBe(200);
    expect(scene.origin.streams).toHaveLength(2);
    for (const request of scene.origin.streams) expectOnce(request);
  });
});

describe('I4 exactly once: every source of the value, over HTTP/2', () => {
  it('I4 exactly once: each type of header has the exact resolved value on a stream', async () => {
    const opaque = 'op{aque}"\\, with; spaces';
    await using scene = await createH2Scene({
      secrets: { BRACES: 'a{TOKEN}b', NUL_LIKE: '\\0%00' },
      rules: [
        bearerRule('api.test', {
          headers: [
            { name: 'a-one', type: 'workspace_secret', value: '{TOKEN}' },
            { name: 'B_Two', type: 'workspace_secret', value: 'x {TOKEN}:{TOKEN} y' },
            { name: 'C-Three', type: 'workspace_secret', value: '{BRACES}{NUL_LIKE}' },
            { name: 'D-Four', type: 'opaque', value: opaque },
            { name: 'E-Five', type: 'plaintext', value: '{TOKEN}' },
          ],
        }),
      ],
    });
    const { request } = await arrival(scene, [
      ['a_one', 'x'],
      ['b-two', 'y'],
      ['c_three', 'z'],
      ['d-four', 'w'],
      ['e_five', 'v'],
    ]);
    expect(request?.headers.slice(4)).toEqual([
      ['a-one', SECRET],
      ['b_two', `x ${SECRET}:${SECRET} y`],
      ['c-three', 'a{TOKEN}b\\0%00'],
      ['d-four', opaque],
      ['e-five', '{TOKEN}'],
    ]);
    expect(request?.neverIndexed).toEqual(['a-one', 'b_two', 'c-three', 'd-four', 'e-five']);
  });

  it('I4 exactly once: from a callback, called or cached, on a stream', async () => {
    await using callback = await createCallbackEndpoint({
      headers: { authorization: INJECTED, [KEY]: PLAIN },
    });
    await using scene = await createH2Scene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
    });
    for (let i = 0; i < 3; i += 1) {
      const extra: SentField[] = [
        ['authorization', 'AGENT'],
        ['x_api_key', 'AGENT'],
      ];
      expectOnce((await arrival(scene, extra)).request);
    }
    expect(callback.calls).toHaveLength(1);
  });

  it('I4 exactly once: only the first of two rules for a host applies on a stream', async () => {
    const second = [{ name: 'X-Second', type: 'plaintext', value: '2' }];
    await using scene = await createH2Scene({
      rules: [...rules, bearerRule('api.test', { headers: second })],
    });
    const { request } = await arrival(scene, [['authorization', 'AGENT']]);
    expectOnce(request);
    expect(valuesOf(request, 'X-Second')).toEqual([]);
  });
});

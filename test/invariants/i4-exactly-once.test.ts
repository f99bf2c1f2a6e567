// I4: whatever the agent sent, the origin gets the injected field exactly once, with exactly the resolved value.
// Names are compared as the most lenient origin does: in any case, `_` equals `-`.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type Exchange, type OriginRequest, echo } from '../support/recording-origin.ts';
import { runs } from '../support/run-size.ts';
import { INJECTED, SECRET, type Scene, bearerRule, createScene, head } from './credential-scene.ts';

const KEY = 'X-Api-Key';
const PLAIN = 'a, b; {c}="d"\t\\~';
const headers = [
  { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
  { name: KEY, type: 'plaintext', value: PLAIN },
];
const rules = [bearerRule('api.test', { headers })];

/** The values that the origin got under any spelling of a name. */
function valuesOf(request: OriginRequest | undefined, name: string): readonly string[] | undefined {
  const fold = (text: string): string => text.toLowerCase().replaceAll('_', '-');
  return request?.headers.filter(([key]) => fold(key) === fold(name)).map(([, value]) => value);
}

function expectOnce(request: OriginRequest | undefined): void {
  expect(valuesOf(request, 'Authorization')).toEqual([INJECTED]);
  expect(valuesOf(request, KEY)).toEqual([PLAIN]);
  // The injected field is the last: an origin that uses the last of two fields, or the first, uses the same one.
  expect(request?.headers.slice(-2)).toEqual([
    ['Authorization', INJECTED],
    [KEY, PLAIN],
  ]);
}

async function arrival(
  scene: Scene,
  fields: readonly string[],
  startLine = 'GET /',
): Promise<OriginRequest | undefined> {
  const before = scene.origin.requests.length;
  await using client = await scene.tunnel();
  await client.send(head(startLine, scene.at(), fields));
  await client.readResponse();
  return scene.origin.requests[before];
}

describe('I4 exactly once: the agent sends the same name', () => {
  const rows: readonly (readonly [why: string, fields: readonly string[]])[] = [
    ['nothing', []],
    ['the field', ['Authorization: Bearer AGENT']],
    ['the field twice', ['Authorization: one', 'Authorization: two']],
    ['the field in two cases', ['authorization: one', 'AUTHORIZATION: two']],
    ['an underscore for a hyphen', ['X_Api_Key: one', 'X-Api_Key: two', 'x_api-key: three']],
    ['the injected value itself', [`Authorization: ${INJECTED}`, `${KEY}: ${PLAIN}`]],
    ['an empty value', ['Authorization:', `${KEY}: \t`]],
    ['a list', ['Authorization: Bearer a, Bearer b']],
    ['a value with an empty list member', ['Authorization: ,', 'Authorization: ']],
    ['bytes above ASCII', ['Authorization: \xe9\xff']],
    ['a nomination in Connection', ['Connection: authorization, x-api-key']],
    ['a nomination and the field', ['Connection: close, Authorization', 'Authorization: AGENT']],
    [
      'nominations in two Connection fields',
      ['Connection: AUTHORIZATION', 'Connection: X-API-KEY', `${KEY}: x`],
    ],
    ['a nomination with an underscore', ['Connection: x_api_key', 'X_Api_Key: x']],
    ['a Trailer announcement', ['Trailer: Authorization', 'TE: trailers']],
    [
      'proxy fields with a similar name',
      ['Proxy-Authorization: Basic eA==', 'Proxy-Authenticate: x', 'Proxy-Foo: y'],
    ],
    ['the field first and last', ['Authorization: first', 'A: 1', 'B: 2', 'Authorization: last']],
  ];
  it.each(rows)('I4 exactly once: %s', async (_, fields) => {
    await using scene = await createScene({ rules });
    const request = await arrival(scene, fields);
    expectOnce(request);
    const ours = ['connection', 'trailer', 'te', 'proxy-authorization', 'proxy-authenticate', 'proxy-foo'];
    for (const name of ours) expect(valuesOf(request, name)).toEqual([]);
  });

  const refused: readonly (readonly [why: string, fields: readonly string[]])[] = [
    ['a folded line', ['Authorization: one', ' two']],
    ['a folded line with a tab', ['X-A: 1', '\tAuthorization: two']],
    ['a space before the colon', ['Authorization : one']],
    ['a NUL in the name', ['Authorization\0: one']],
    ['a bare CR before the name', ['X-A: 1\rAuthorization: one']],
    ['a bare LF before the name', ['X-A: 1\nAuthorization: one']],
    ['a line without a colon', ['Authorization']],
    ['a name that continues above ASCII', ['Authorization\xa0: one']],
  ];
  it.each(refused)('I4 exactly once: %s is refused', async (_, fields) => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at(), fields));
    expect((await client.readResponse()).head.status).toBe(400);
    expect(scene.origin.transcripts.join('')).toBe('');
  });

  it('I4 exactly once: the agent sends it in a trailer', async () => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    const trailers = `Authorization: AGENT\r\n${KEY}: AGENT\r\nX_API_KEY: AGENT\r\n`;
    await client.send(
      `${head('POST /', scene.at(), ['Transfer-Encoding: chunked', 'Trailer: Authorization'])}1\r\nx\r\n0\r\n${trailers}\r\n`,
    );
    await client.readResponse();
    expectOnce(scene.origin.requests[0]);
    expect(scene.origin.transcripts.join('')).not.toContain('AGENT');
    expect(scene.origin.transcripts.join('').endsWith('\r\n1\r\nx\r\n0\r\n\r\n')).toBe(true);
  });

  it('I4 exactly once: the agent sends it in any spelling, order and number', async () => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    const spelling = (name: string): fc.Arbitrary<string> =>
      fc
        .array(fc.tuple(fc.boolean(), fc.boolean()), { minLength: name.length, maxLength: name.length })
        .map((flips) =>
          [...name]
            .map((letter, i) => (flips[i]?.[0] ? letter.toUpperCase() : letter.toLowerCase()))
            .map((letter, i) => (letter === '-' && flips[i]?.[1] ? '_' : letter))
            .join(''),
        );
    const name = fc.oneof(
      spelling('authorization'),
      spelling('x-api-key'),
      fc.constantFrom('Authorization2', 'X-Authorization', 'XApiKey', 'X-Api-Key-', 'Cookie', 'Connection'),
    );
    const value = fc.constantFrom(
      'AGENT',
      '',
      'close',
      'authorization',
      'x-api-key, keep-alive',
      'x_api_key',
      'a,b',
    );
    const lines = fc.array(fc.tuple(name, value), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lines, async (sent) => {
        const before = scene.origin.requests.length;
        const isEnding = sent.some(([key, text]) => key === 'Connection' && text === 'close');
        const fields = sent.map(([key, text]) => `${key}: ${text}`);
        const own = isEnding ? await scene.tunnel() : client;
        await own.send(head('GET /', scene.at(), fields));
        expect((await own.readResponse()).head.status).toBe(200);
        if (isEnding) await own[Symbol.asyncDispose]();
        expectOnce(scene.origin.requests[before]);
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('I4 exactly once: on every kind of request', () => {
  it('I4 exactly once: on every request of a connection', async () => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    for (let i = 0; i < 5; i += 1) {
      await client.send(head(`GET /${i}`, scene.at(), [`Authorization: ${i}`]));
      await client.readResponse();
    }
    expect(scene.origin.requests).toHaveLength(5);
    for (const request of scene.origin.requests) expectOnce(request);
  });

  const kinds: readonly (readonly [why: string, fields: readonly string[], body: string])[] = [
    ['a body of fixed length', ['Content-Length: 1', 'Authorization: x'], 'x'],
    ['a chunked body', ['Transfer-Encoding: chunked', 'Authorization: x'], '0\r\n\r\n'],
    ['Expect', ['Expect: 100-continue', 'Content-Length: 1', 'Authorization: x'], 'x'],
    ['an upgrade', ['Connection: Upgrade, Authorization', 'Upgrade: websocket', 'Authorization: x'], ''],
  ];
  it.each(kinds)('I4 exactly once: with %s', async (why, fields, body) => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    await client.send(`${head(why === 'an upgrade' ? 'GET /' : 'POST /', scene.at(), fields)}${body}`);
    await scene.origin.request(0);
    const [request] = scene.origin.requests;
    expect([valuesOf(request, 'Authorization'), valuesOf(request, KEY)]).toEqual([[INJECTED], [PLAIN]]);
    expect(valuesOf(request, 'Connection')).toEqual(why === 'an upgrade' ? ['Upgrade'] : []);
  });

  it('I4 exactly once: on HTTP/1.0 without Host', async () => {
    await using scene = await createScene({ rules });
    await using client = await scene.tunnel();
    await client.send('GET / HTTP/1.0\r\nAuthorization: x\r\nConnection: keep-alive, authorization\r\n\r\n');
    await client.readResponse();
    const [request] = scene.origin.requests;
    expectOnce(request);
    expect([valuesOf(request, 'Host'), valuesOf(request, 'Connection')]).toEqual([[scene.at()], ['close']]);
  });

  it('I4 exactly once: on the second attempt after a dead connection', async () => {
    const respond = (exchange: Exchange): void | Promise<void> =>
      exchange.request.connection === 0 && exchange.request.target === '/' ? exchange.end() : echo(exchange);
    await using scene = await createScene({ rules, respond });
    await using client = await scene.tunnel();
    for (const path of ['/warm', '/']) {
      await client.send(head(`GET ${path}`, scene.at(), ['Authorization: x', 'X_Api_Key: y']));
      await client.readResponse();
    }
    expect(scene.origin.requests.map(({ target }) => target)).toEqual(['/warm', '/', '/']);
    for (const request of scene.origin.requests) expectOnce(request);
  });

  it('I4 exactly once: in plaintext to a destination that the operator lists', async () => {
    await using scene = await createScene({
      rules: [bearerRule('localhost', { headers })],
      tls: 'clear',
    });
    await using client = await scene.client();
    const host = scene.at('localhost');
    await client.send(
      head(`GET http://${host}/`, host, ['authorization: x', 'Proxy-Connection: keep-alive']),
    );
    await client.readResponse();
    expectOnce(scene.origin.requests[0]);
    expect(valuesOf(scene.origin.requests[0], 'Proxy-Connection')).toEqual([]);
  });
});

describe('I4 exactly once: every source of the value', () => {
  it('I4 exactly once: each type of header has the exact resolved value', async () => {
    const opaque = 'op{aque}"\\, with; spaces';
    await using scene = await createScene({
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
    const request = await arrival(scene, ['A_ONE: x', 'b-two: y', 'c_three: z', 'D-FOUR: w', 'e_five: v']);
    expect(request?.headers.slice(1)).toEqual([
      ['a-one', SECRET],
      ['B_Two', `x ${SECRET}:${SECRET} y`],
      ['C-Three', 'a{TOKEN}b\\0%00'],
      ['D-Four', opaque],
      ['E-Five', '{TOKEN}'],
    ]);
  });

  it('I4 exactly once: from a callback, called or cached', async () => {
    await using callback = await createCallbackEndpoint({
      headers: { authorization: INJECTED, [KEY]: PLAIN },
    });
    await using scene = await createScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
    });
    for (let i = 0; i < 3; i += 1) {
      const request = await arrival(scene, [
        'Authorization: AGENT',
        'x_api_key: AGENT',
        'Connection: authorization',
      ]);
      expect([valuesOf(request, 'Authorization'), valuesOf(request, KEY)]).toEqual([[INJECTED], [PLAIN]]);
    }
    expect(callback.calls).toHaveLength(1);
  });

  it('I4 exactly once: only the first of two rules for a host applies', async () => {
    const second = [
      { name: 'Authorization', type: 'plaintext', value: 'second' },
      { name: 'X-Second', type: 'plaintext', value: '2' },
    ];
    await using scene = await createScene({ rules: [...rules, bearerRule('api.test', { headers: second })] });
    const request = await arrival(scene, ['Authorization: AGENT']);
    expectOnce(request);
    expect(valuesOf(request, 'X-Second')).toEqual([]);
  });
});

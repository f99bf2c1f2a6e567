// I6: after any doubt or internal failure, no byte of the request is sent, nothing is cached, and the next request is
// decided anew. Internal failures are injected into the parts that handle a request.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/cli/settings.ts';
import { type CallbackResponse, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, jsonResponse, response } from '../support/recording-origin.ts';
import type { BreakablePart } from './breakable-parts.ts';
import { INJECTED, SECRET, type Scene, bearerRule, createScene, head } from './credential-scene.ts';

// The error quotes the secret, which must not leak.
const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => 'quoted: sesame>>open??now~~42~');
});
vi.mock('../../src/policy/compile.ts', async (original) => breakable.compile(await original()));
vi.mock('../../src/callback/resolver.ts', async (original) => breakable.resolver(await original()));
vi.mock('../../src/proxy/h1/outgoing-head.ts', async (original) => breakable.outgoingHead(await original()));
vi.mock('../../src/proxy/gate/request-plan.ts', async (original) => breakable.plan(await original()));
vi.mock('../../src/proxy/mask/mask.ts', async (original) => breakable.mask(await original()));
vi.mock('../../src/tls/leaf-cache.ts', async (original) => breakable.leafCache(await original()));

beforeEach(() => broken.clear());

async function ask(scene: Scene, path = '/', name = 'api.test'): Promise<{ status: number; text: string }> {
  await using client = await scene.tunnel(name);
  await client.send(head(`GET ${path}`, scene.at(name)));
  const { head: reply, text } = await client.readResponse();
  return { status: reply.status, text };
}

function errorOf({ text }: { text: string }): unknown {
  return JSON.parse(text).error;
}

describe('I6 fail closed: callbacks', () => {
  const good = { headers: { Authorization: INJECTED } };
  const leaky = (value: unknown): CallbackResponse => jsonResponse({ headers: value });
  const rows: readonly (readonly [why: string, reply: CallbackResponse])[] = [
    ['status 500', jsonResponse(good, 500)],
    ['status 404', jsonResponse(good, 404)],
    ['a redirect', response(302, [['Location', '/elsewhere']], JSON.stringify(good))],
    ['status 304', jsonResponse(good, 304)],
    ['no content', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')],
    ['an empty body', response(200, [])],
    ['invalid JSON', response(200, [], 'Authorization: x')],
    ['truncated JSON', response(200, [], JSON.stringify(good).slice(0, -2))],
    ['no headers member', jsonResponse({ Headers: good.headers })],
    ['a list for headers', leaky([['Authorization', 'x']])],
    ['null for headers', leaky(null)],
    ['a number for a value', leaky({ Authorization: 1 })],
    ['an empty value', leaky({ Authorization: '' })],
    ['a line break in a value', leaky({ Authorization: `x\r\nX-Evil: ${SECRET}` })],
    ['a NUL in a value', leaky({ Authorization: 'x\0' })],
    ['a value above ASCII', leaky({ Authorization: 'é' })],
    ['a framing field', leaky({ ...good.headers, 'Content-Length': '0' })],
    ['Host', leaky({ ...good.headers, Host: 'evil.test' })],
    ['a proxy field', leaky({ ...good.headers, 'Proxy-Authorization': 'x' })],
    ['an invalid name', leaky({ ...good.headers, 'X A': 'x' })],
    ['two spellings of one name', leaky({ 'X-Key': 'a', X_KEY: 'b' })],
    ['two members with one name', response(200, [], '{"headers":{"a":"1"},"headers":{"a":"2"}}')],
    ['sixty-five headers', leaky(Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`x-${i}`, 'v'])))],
    ['a body over 64 KiB', leaky({ 'X-A': 'x'.repeat(8_000), pad: 'y'.repeat(70_000) })],
    ['a wrong Content-Encoding', response(200, [['Content-Encoding', 'gzip']], JSON.stringify(good))],
    ['two codings', response(200, [['Content-Encoding', 'gzip, gzip']], JSON.stringify(good))],
    ['a closed connection', async (exchange) => exchange.end()],
    ['a reset', async (exchange) => exchange.reset()],
    [
      'a truncated body',
      async ({ send, end }) => send('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{').then(end),
    ],
  ];
  it.each(rows)('I6 fail closed: a callback that returns %s fails the request', async (_, reply) => {
    await using callback = await createCallbackEndpoint(reply);
    await using scene = await createScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
    });
    const refused = await ask(scene);
    expect([refused.status, JSON.parse(refused.text)]).toEqual([
      502,
      { error: 'callback_failed', message: 'callback resolution failed' },
    ]);
    expect(scene.origin.connections).toBe(0);
    // Nothing was cached: the next request calls again and gets the current value.
    callback.respondWith(good);
    expect((await ask(scene)).status).toBe(200);
    expect(callback.calls).toHaveLength(2);
    expect(headerValues(scene.origin.requests[0] ?? { headers: [] }, 'authorization')).toEqual([INJECTED]);
  });

  const unreachable: readonly (readonly [why: string, url: string])[] = [
    ['refuses connections', 'http://127.0.0.1:1/'],
    ['has a name that cannot be resolved', 'http://nowhere.test:9/'],
    ['has the address of a metadata service', 'http://169.254.169.254/latest'],
    ['speaks no TLS', 'https://api.test:PORT/'],
  ];
  it.each(unreachable)('I6 fail closed: a callback that %s fails the request', async (_, url) => {
    await using plain = await createOrigin();
    await using scene = await createScene({
      rules: [],
      callbacks: [
        { match_hosts: ['api.test'], url: url.replace('PORT', String(plain.port)), ttl_seconds: 60 },
      ],
      resolve: { 'nowhere.test': new Error('no such name') },
      config: () => ({ callback: { timeout_ms: 1_000 } }),
    });
    expect(errorOf(await ask(scene))).toBe('callback_failed');
    expect(scene.origin.connections).toBe(0);
  });

  it('I6 fail closed: a callback that is silent until its deadline fails the request', async () => {
    await using callback = await createCallbackEndpoint(() => new Promise(() => {}));
    await using scene = await createScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
      config: () => ({ callback: { timeout_ms: 50 } }),
    });
    expect(errorOf(await ask(scene))).toBe('callback_failed');
    expect(scene.origin.connections).toBe(0);
  });

  it("I6 fail closed: the callback's failure is reported rather than a dead origin's", async () => {
    await using callback = await createCallbackEndpoint(jsonResponse({}, 500));
    await using scene = await createScene({
      rules: [],
      callbacks: [{ match_hosts: ['api.test'], url: callback.url, ttl_seconds: 60 }],
    });
    await scene.origin.close();
    expect(errorOf(await ask(scene))).toBe('callback_failed');
  });
});

describe('I6 fail closed: documents', () => {
  const rule = (header: unknown): unknown => ({ rules: [bearerRule('api.test', { headers: [header] })] });
  const rows: readonly (readonly [why: string, document: unknown])[] = [
    ['a secret that does not exist', rule({ name: 'A', type: 'workspace_secret', value: 'k-{MISSING}-k' })],
    ['a secret that is empty', rule({ name: 'A', type: 'workspace_secret', value: 'k-{EMPTY}-k' })],
    ['a secret with a line break', rule({ name: 'A', type: 'workspace_secret', value: '{BROKEN}' })],
    ['a secret above ASCII', rule({ name: 'A', type: 'workspace_secret', value: '{WIDE}' })],
    ['a template without a secret', rule({ name: 'A', type: 'workspace_secret', value: 'TOKEN' })],
    ['a stray brace', rule({ name: 'A', type: 'workspace_secret', value: '{TOKEN' })],
    ['a framing field', rule({ name: 'Content-Length', type: 'plaintext', value: '0' })],
    ['an unknown key', { rules: [], extra: 1 }],
    ['nothing', null],
  ];
  it.each(rows)(
    'I6 fail closed: a document with %s is rejected, and the old document stays in force',
    async (_, document) => {
      await using scene = await createScene({
        secrets: { EMPTY: '', BROKEN: 'a\r\nX-Evil: b', WIDE: 'é' },
      });
      expect(scene.proxy.apply(document).ok).toBe(false);
      expect((await ask(scene)).status).toBe(200);
      expect(headerValues(scene.origin.requests[0] ?? { headers: [] }, 'authorization')).toEqual([INJECTED]);
    },
  );

  it('I6 fail closed: a request to a host whose secret was removed is refused, not sent without it', async () => {
    await using scene = await createScene();
    const gone = {
      rules: [
        bearerRule('api.test', { headers: [{ name: 'A', type: 'workspace_secret', value: '{GONE}' }] }),
      ],
    };
    expect(scene.proxy.apply(gone)).toMatchObject({
      ok: false,
      issues: [{ loc: ['rules', 0, 'headers', 0, 'value'] }],
    });
    expect(scene.proxy.sidecar.revision).toBe(1);
  });
});

describe('I6 fail closed: internal failures', () => {
  const parts: readonly (readonly [BreakablePart, string])[] = [
    ['decide', 'the decision throws'],
    ['secretsFor', 'the masks are not available'],
    ['plan', 'the plan throws'],
    ['outgoing', 'the head cannot be written'],
    ['resolve', 'the callback resolver throws'],
    ['resolveLater', 'the callback resolver rejects'],
  ];
  const ways = ['in a tunnel', 'on the proxy port'] as const;
  it.each(parts.flatMap(([part, why]) => ways.map((way) => [why, way, part] as const)))(
    'I6 fail closed: if %s %s, nothing is sent and the next request is served',
    async (_, way, part) => {
      await using callback = await createCallbackEndpoint({ headers: { Authorization: INJECTED } });
      const isCallback = part === 'resolve' || part === 'resolveLater';
      await using scene = await createScene({
        ...(way === 'in a tunnel' ? {} : { tls: 'clear' as const }),
        names: ['localhost'],
        rules: isCallback ? [] : [bearerRule('localhost')],
        callbacks: isCallback ? [{ match_hosts: ['localhost'], url: callback.url, ttl_seconds: 60 }] : [],
      });
      const authority = scene.at('localhost');
      await using client = way === 'in a tunnel' ? await scene.tunnel('localhost') : await scene.client();
      const line = way === 'in a tunnel' ? 'GET /' : `GET http://${authority}/`;
      broken.add(part);
      await client.send(head(line, authority));
      const failed = await client.readResponse();
      expect([failed.head.status, errorOf(failed)]).toEqual([500, 'internal_error']);
      expect(client.transcript).not.toContain('quoted');
      expect(scene.origin.transcripts.join('')).toBe('');
      broken.clear();
      await using next = way === 'in a tunnel' ? await scene.tunnel('localhost') : await scene.client();
      await next.send(head(line, authority));
      expect((await next.readResponse()).head.status).toBe(200);
      expect(headerValues(scene.origin.requests[0] ?? { headers: [] }, 'authorization')).toEqual([INJECTED]);
      expect(JSON.stringify(scene.proxy.lines)).not.toContain(SECRET);
    },
  );

  it('I6 fail closed: a cover that throws at CONNECT opens no tunnel', async () => {
    await using scene = await createScene();
    broken.add('coverOf');
    await using client = await scene.client();
    expect((await client.openTunnel(scene.at())).status).toBe(500);
    expect(await client.readToEnd()).toMatch(/internal_error/);
    broken.clear();
    expect((await ask(scene)).status).toBe(200);
    expect(scene.origin.connections).toBe(1);
  });

  it('I6 fail closed: a cover that throws before the dial prevents the dial', async () => {
    await using scene = await createScene();
    await using client = await scene.tunnel();
    broken.add('coverOf');
    await client.send(head('GET /', scene.at()));
    expect((await client.readResponse()).head.status).toBe(500);
    expect(scene.origin.connections).toBe(0);
  });

  it('I6 fail closed: without a leaf certificate nothing is dialled', async () => {
    await using scene = await createScene();
    broken.add('leaf');
    await expect(scene.tunnel()).rejects.toThrow(/internal error/);
    broken.clear();
    expect((await ask(scene)).status).toBe(200);
    expect(scene.origin.connections).toBe(1);
  });

  it('I6 fail closed: a response that cannot be masked is not relayed', async () => {
    await using scene = await createScene({
      respond: ({ send }) => send(response(200, [['X-Echo', INJECTED]], 'body')),
    });
    broken.add('mask');
    const failed = await ask(scene);
    expect([failed.status, errorOf(failed)]).toEqual([500, 'internal_error']);
    broken.clear();
    expect((await ask(scene)).text).toBe('body');
    // The connection on which the masking failed is not reused.
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1]);
  });
});

describe('I6 fail closed: records that cannot be written', () => {
  it('I6 fail closed: while the record sink is blocked, nothing is dialled, tunnelled or called', async () => {
    await using callback = await createCallbackEndpoint({ headers: {} });
    await using blind = await createOrigin();
    await using scene = await createScene({
      callbacks: [{ match_hosts: ['called.test'], url: callback.url, ttl_seconds: 60 }],
    });
    await using inside = await scene.tunnel();
    await using called = await scene.tunnel('called.test').catch(() => scene.client());
    scene.proxy.blockSink(true);
    await inside.send(head('GET /', scene.at()));
    const refused = await inside.readResponse();
    expect([refused.head.status, errorOf(refused)]).toEqual([503, 'record_sink_blocked']);
    await called.send(head('GET /', scene.at('called.test')));
    expect((await called.readResponse()).head.status).toBe(503);
    for (const text of [
      `CONNECT 127.0.0.1:${blind.port}`,
      `CONNECT ${scene.at()}`,
      `GET http://127.0.0.1:${blind.port}/`,
    ]) {
      await using client = await scene.client();
      await client.send(head(text, `127.0.0.1:${blind.port}`));
      expect((await client.readHead()).status).toBe(503);
    }
    expect([scene.origin.connections, blind.connections, callback.calls.length]).toEqual([0, 0, 0]);
    scene.proxy.blockSink(false);
    expect((await ask(scene)).status).toBe(200);
  });

  it('I6 fail closed: where the operator allows dropped records, requests are sent', async () => {
    await using scene = await createScene({ config: () => ({ log: { when_blocked: 'drop' } }) });
    scene.proxy.blockSink(true);
    expect((await ask(scene)).status).toBe(200);
    expect(scene.proxy.records()).toEqual([]);
  });
});

describe('I6 fail closed: names and hosts', () => {
  it('I6 fail closed: a name that cannot be resolved or has a forbidden address', async () => {
    await using scene = await createScene({
      rules: [bearerRule('*.test')],
      resolve: {
        'lost.test': new Error('no such name'),
        'void.test': [],
        'meta.test': ['127.0.0.1', '169.254.169.254'],
      },
    });
    const responses: unknown[] = [];
    for (const name of ['lost.test', 'void.test', 'meta.test'])
      responses.push(errorOf(await ask(scene, '/', name)));
    expect(responses).toEqual(['dns_failed', 'dns_failed', 'address_denied']);
    expect(scene.origin.connections).toBe(0);
  });
});

it.each(['SALLYPORT_AUTH_TOKEN', 'SALLYPORT_ALLOW_CLIENT'])(
  'I6 fail closed: %s, which is no setting, does not leave the proxy open',
  async (name) => {
    await expect(readConfig({}, { [name]: 'sesame-open-now' })).rejects.toThrow(`${name} is not a setting`);
  },
);

// I10: a request sees one revision of the rules from start to end, and the revision reported as in force is the stored one.
// Documents are replaced at every stage of a request; the origin sees which document applied.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { headerValues } from '../support/message-reader.ts';
import { createOrigin, echo, response } from '../support/recording-origin.ts';
import { type TestSidecar, createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import { type Scene, bearerRule, head, publicAuthority } from './credential-scene.ts';
import {
  type Mark,
  type ScriptedStore,
  respondMarked,
  carrying,
  createRevisionScene,
  createScriptedStore,
  markedCallback,
  markedRule,
  marksIn,
} from './revision-scene.ts';

function swap({ proxy }: Scene, document: unknown = { rules: [markedRule('new')] }): void {
  expect(proxy.apply(document)).toMatchObject({ ok: true });
}

/** Every request that arrived was decided by the document with the mark; the records agree. */
async function expectJudgedBy(scene: Scene, marks: readonly Mark[]): Promise<void> {
  expect(scene.origin.requests.map(marksIn)).toEqual(marks.map(carrying));
  for (const [i, mark] of marks.entries())
    expect(await scene.proxy.record(i)).toMatchObject({
      revision: mark === 'old' ? 1 : 2,
      injected: carrying(mark).map((field) =>
        expect.stringMatching(new RegExp(`^${field.split(':')[0]}$`, 'i')),
      ),
    });
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

describe('I10 atomic: rules that change during a request', () => {
  it('I10 atomic: after half a head: the new rules decide the request', async () => {
    await using scene = await createRevisionScene();
    await using client = await scene.tunnel();
    const bytes = head('GET /', scene.at());
    await client.send(bytes.slice(0, 20));
    // When this response arrives, the proxy has read all that was sent before.
    await using _bystander = await scene.tunnel();
    swap(scene);
    await client.send(bytes.slice(20));
    expect((await client.readResponse()).head.status).toBe(200);
    await expectJudgedBy(scene, ['new']);
  });

  it('I10 atomic: with pipelined requests: each is decided when its turn comes', async () => {
    const { opened, open } = gate();
    await using scene = await createRevisionScene({
      async respond(exchange) {
        if (exchange.request.target === '/1') await opened;
        await echo(exchange);
      },
    });
    await using client = await scene.tunnel();
    await client.send(`${head('GET /1', scene.at())}${head('GET /2', scene.at())}`);
    await scene.origin.request(0);
    swap(scene);
    open();
    await client.readResponse();
    await client.readResponse();
    await expectJudgedBy(scene, ['old', 'new']);
  });

  it('I10 atomic: before a request in an open tunnel: the tunnel belongs to no revision', async () => {
    await using scene = await createRevisionScene();
    await using client = await scene.client();
    expect((await client.openTunnel(scene.at())).status).toBe(200);
    swap(scene);
    await client.startTls({ ca: scene.proxy.caPem, name: 'api.test' });
    await client.send(head('GET /', scene.at()));
    await client.readResponse();
    await expectJudgedBy(scene, ['new']);
  });

  it('I10 atomic: during a callback: neither the result of the old callback nor an old connection is used', async () => {
    const { opened, open } = gate();
    let nowMs = 0;
    const asked: Mark[] = [];
    await using endpoint = await createCallbackEndpoint(
      respondMarked((mark) => {
        asked.push(mark);
        return asked.length === 2 ? opened : undefined;
      }),
    );
    await using scene = await createRevisionScene({
      names: ['called.test'],
      rules: [],
      callbacks: [markedCallback('old', endpoint.url)],
      now: () => nowMs,
    });
    await using client = await scene.tunnel('called.test');
    await client.send(head('GET /warm', scene.at('called.test')));
    await client.readResponse();
    // The cached result has expired; the connection has not.
    nowMs += 61_000;
    await client.send(head('GET /late', scene.at('called.test')));
    await expect.poll(() => asked, { timeout: 4_000 }).toEqual(['old', 'old']);
    swap(scene, { callbacks: [markedCallback('new', endpoint.url)] });
    open();
    await client.readResponse();
    await expectJudgedBy(scene, ['old', 'new']);
    expect(asked).toEqual(['old', 'old', 'new']);
    expect(scene.origin.requests.at(-1)?.connection).not.toBe(0);
  });

  it('I10 atomic: during a callback that a rule replaces: the rule applies', async () => {
    const { opened, open } = gate();
    await using endpoint = await createCallbackEndpoint(respondMarked(() => opened));
    await using scene = await createRevisionScene({
      names: ['called.test'],
      rules: [],
      callbacks: [markedCallback('old', endpoint.url)],
    });
    await using client = await scene.tunnel('called.test');
    await client.send(head('GET /', scene.at('called.test')));
    await expect.poll(() => endpoint.calls.length, { timeout: 4_000 }).toBe(1);
    swap(scene, { rules: [markedRule('new', 'called.test')] });
    open();
    await client.readResponse();
    await expectJudgedBy(scene, ['new']);
    expect(await scene.proxy.record(0)).not.toHaveProperty('callback');
  });

  it('I10 atomic: during the lookup of the host: the request is decided again', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    await using scene = await createRevisionScene({ resolve: { 'api.test': promise } });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    await expect.poll(() => scene.proxy.lookups, { timeout: 4_000 }).toEqual(['api.test']);
    swap(scene);
    resolve(['127.0.0.1']);
    await client.readResponse();
    await expectJudgedBy(scene, ['new']);
  });

  /** Calls `act` in each handshake of the origin. */
  function duringHandshakes(act: () => void): {
    authority: typeof publicAuthority;
    names: readonly string[];
  } {
    const contextFor: typeof publicAuthority.contextFor = (name) => {
      act();
      return publicAuthority.contextFor(name);
    };
    return { authority: { ...publicAuthority, contextFor }, names: ['api.test'] };
  }

  it('I10 atomic: during the handshake with the host: the request is decided again', async () => {
    let hasSwapped = false;
    await using scene: Scene = await createRevisionScene({
      tls: duringHandshakes(() => {
        if (!hasSwapped) swap(scene);
        hasSwapped = true;
      }),
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    await client.readResponse();
    await expectJudgedBy(scene, ['new']);
  });

  it('I10 atomic: during every dial attempt: the request is refused, and nothing was sent', async () => {
    await using scene: Scene = await createRevisionScene({ tls: duringHandshakes(() => swap(scene)) });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    const { head: reply, text } = await client.readResponse();
    expect([reply.status, JSON.parse(text).error]).toEqual([503, 'rules_changed']);
    expect(scene.origin.transcripts.join('')).toBe('');
  });

  it('I10 atomic: during a request body: the request ends under the old rules, and its connection is not reused', async () => {
    await using scene = await createRevisionScene();
    await using client = await scene.tunnel();
    await client.send(`${head('POST /', scene.at(), ['Content-Length: 8'])}half`);
    await scene.origin.request(0);
    swap(scene);
    await client.send('half');
    expect((await client.readResponse()).head.status).toBe(200);
    await client.send(head('GET /next', scene.at()));
    await client.readResponse();
    await expectJudgedBy(scene, ['old', 'new']);
    expect(scene.origin.requests.map(({ body }) => body?.length)).toEqual([8, 0]);
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1]);
  });

  it('I10 atomic: before 100 Continue: the body is sent under the old rules', async () => {
    const { opened, open } = gate();
    await using scene = await createRevisionScene({
      async respond(exchange) {
        await opened;
        await echo(exchange);
      },
    });
    await using client = await scene.tunnel();
    await client.send(head('POST /', scene.at(), ['Content-Length: 4', 'Expect: 100-continue']));
    await scene.origin.request(0);
    swap(scene);
    open();
    expect((await client.readHead()).status).toBe(100);
    await client.send('body');
    expect((await client.readResponse()).head.status).toBe(200);
    await expectJudgedBy(scene, ['old']);
    expect(scene.origin.requests[0]?.body?.length).toBe(4);
  });

  it('I10 atomic: before the response: the old secret is masked', async () => {
    const { opened, open } = gate();
    await using scene = await createRevisionScene({
      async respond({ request, send }) {
        await opened;
        await send(response(200, [['X-Echo', headerValues(request, 'x-opaque').join()]], 'body'));
      },
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at()));
    await scene.origin.request(0);
    swap(scene);
    open();
    const { head: reply, text } = await client.readResponse();
    expect([headerValues(reply, 'x-echo'), text]).toEqual([['**********'], 'body']);
    await expectJudgedBy(scene, ['old']);
  });

  it('I10 atomic: before a retry on a new connection: the request is decided again', async () => {
    await using scene: Scene = await createRevisionScene({
      async respond(exchange) {
        const { request, reset } = exchange;
        if (request.target !== '/again' || request.connection !== 0) return echo(exchange);
        swap(scene);
        reset();
      },
    });
    await using client = await scene.tunnel();
    for (const path of ['/warm', '/again']) {
      await client.send(head(`GET ${path}`, scene.at()));
      expect((await client.readResponse()).head.status).toBe(200);
    }
    expect(scene.origin.requests.map(marksIn)).toEqual(
      ['old', 'old', 'new'].map((mark) => carrying(mark as Mark)),
    );
    expect(scene.proxy.records().map(({ revision }) => revision)).toEqual([1, 2]);
  });

  it('I10 atomic: after an upgrade: the request head has one revision, and the upgraded protocol has none', async () => {
    const { opened, open } = gate();
    await using scene = await createRevisionScene({
      async respond({ send, reader, end }) {
        await opened;
        await send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
        await send(await reader.read(4));
        end();
      },
    });
    await using client = await scene.tunnel();
    await client.send(head('GET /', scene.at(), ['Connection: Upgrade', 'Upgrade: websocket']));
    await scene.origin.request(0);
    swap(scene);
    open();
    expect((await client.readHead()).status).toBe(101);
    swap(scene, {});
    await client.send('ping');
    expect(await client.readToEnd()).toBe('ping');
    client.end();
    await expectJudgedBy(scene, ['old']);
  });

  it('I10 atomic: after a request: the new rules decide the next request of the client, on a new upstream connection', async () => {
    await using scene = await createRevisionScene();
    await using client = await scene.tunnel();
    for (const path of ['/1', '/2', '/3']) {
      if (path === '/2') swap(scene);
      await client.send(head(`GET ${path}`, scene.at()));
      await client.readResponse();
    }
    await expectJudgedBy(scene, ['old', 'new', 'new']);
    expect(scene.origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 1]);
  });

  it('I10 atomic: during the dial of a tunnel: the tunnel opens and is recorded under the new rules', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    await using blind = await createOrigin();
    await using scene = await createRevisionScene({ resolve: { 'late.test': promise } });
    await using client = await scene.client();
    await client.send(head(`CONNECT late.test:${blind.port}`, `late.test:${blind.port}`));
    await expect.poll(() => scene.proxy.lookups, { timeout: 4_000 }).toEqual(['late.test']);
    swap(scene, { rules: [markedRule('new')], no_proxy: ['late.test'] });
    resolve(['127.0.0.1']);
    expect((await client.readHead()).status).toBe(200);
    await client.send(head('GET /', 'late.test', ['Connection: close']));
    client.end();
    await client.readToEnd();
    expect(await scene.proxy.record(0)).toMatchObject({
      outcome: 'tunnelled',
      revision: 2,
      reason: 'no_proxy',
    });
  });

  it('I10 atomic: with a cached callback result: the same callback is called again', async () => {
    await using endpoint = await createCallbackEndpoint(respondMarked());
    const document = { callbacks: [markedCallback('old', endpoint.url)] };
    await using scene = await createRevisionScene({ names: ['called.test'], rules: [], ...document });
    await using client = await scene.tunnel('called.test');
    for (const path of ['/1', '/2', '/3']) {
      if (path === '/3') swap(scene, document);
      await client.send(head(`GET ${path}`, scene.at('called.test')));
      await client.readResponse();
    }
    expect(endpoint.calls).toHaveLength(2);
    expect(scene.origin.requests.map(marksIn)).toEqual(Array(3).fill(carrying('old')));
  });
});

describe('I10 atomic: many clients and many revisions', () => {
  const hosts = ['a.test', 'b.test', 'c.test'];

  /** Each header names its host and its document; hosts without a rule get none. */
  function documentOf(count: number, named: readonly string[]): { readonly rules: readonly unknown[] } {
    const rules = hosts.map((host) =>
      bearerRule(host, {
        match_paths: named.includes(host) ? [] : ['/no/such/path'],
        headers: ['X-One', 'X-Two', `X-${count}`].map((name) => ({
          name,
          type: name === 'X-Two' ? 'opaque' : 'plaintext',
          value: `${host} ${count}`,
        })),
      }),
    );
    return { rules };
  }

  const turn = (): Promise<void> => new Promise((next) => setImmediate(next));

  it('I10 atomic: no request combines hosts, names and values of two revisions', async () => {
    await using scene = await createRevisionScene({ names: hosts, ...documentOf(1, []) });
    const documents: (readonly string[])[] = [[], []];
    let path = 0;
    const expected = (index: number): readonly string[] => {
      const { revision, authority } = scene.proxy.records()[index] ?? {};
      const host = String(authority).split(':')[0] ?? '';
      const value = `${host} ${revision}`;
      return documents[Number(revision)]?.includes(host)
        ? [`X-One: ${value}`, `X-Two: ${value}`, `X-${revision}: ${value}`]
        : [];
    };
    const tunnels = await Promise.all(
      [...hosts, ...hosts].map(async (host) => ({ host, client: await scene.tunnel(host) })),
    );
    const askAll = async ({ host, client }: (typeof tunnels)[number], count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) {
        path += 1;
        await client.send(head(`GET /${path}`, scene.at(host)));
        expect((await client.readResponse()).head.status).toBe(200);
      }
    };
    const swaps = fc.array(fc.tuple(fc.subarray(hosts), fc.nat(6)), { minLength: 1, maxLength: 5 });
    const counts = fc.array(fc.nat(4), { minLength: tunnels.length, maxLength: tunnels.length });
    await fc.assert(
      fc.asyncProperty(swaps, counts, async (changes, asked) => {
        const asking = Promise.all(tunnels.map((tunnel, i) => askAll(tunnel, asked[i] ?? 0)));
        for (const [named, turns] of changes) {
          swap(scene, documentOf(documents.length, named));
          documents.push(named);
          for (let i = 0; i < turns; i += 1) await turn();
        }
        await asking;
      }),
      { numRuns: 10 },
    );
    for (const { client } of tunnels) await client[Symbol.asyncDispose]();
    await scene.proxy.record(path - 1);
    const places = new Map(scene.proxy.records().map(({ path: place }, i) => [place, i]));
    const seen = scene.origin.requests.map(({ headers, target }) => ({
      target,
      fields: headers.map((field) => field.join(': ')).filter((field) => /^X-(?:One|Two|\d+): /.test(field)),
    }));
    expect(seen).toEqual(seen.map(({ target }) => ({ target, fields: expected(places.get(target) ?? -1) })));
    // Without several revisions this test would prove nothing.
    expect(new Set(scene.proxy.records().map(({ revision }) => revision)).size).toBeGreaterThan(5);
  });
});

describe('I10 atomic: writes to the admin API', () => {
  const CONFIG = '/v1/proxy_config';

  function documentOf(count: number, secret?: string): unknown {
    const plain = { name: 'X-Count', type: 'plaintext', value: String(count) };
    const opaque = { name: 'X-Opaque', type: 'opaque', value: `opaque-${count}` };
    const stored = { name: 'X-Stored', type: 'workspace_secret', value: `{${secret}}` };
    const headers = secret === undefined ? [plain, opaque] : [plain, opaque, stored];
    return { rules: [bearerRule('api.test', { headers })] };
  }

  const counted = (count: number | string, stored?: string): readonly string[] => [
    `X-Count: ${count}`,
    `X-Opaque: opaque-${count}`,
    ...(stored === undefined ? [] : [`X-Stored: ${stored}`]),
  ];

  async function createOrigins(): Promise<Awaited<ReturnType<typeof createOrigin>>> {
    return createOrigin({ tls: { authority: publicAuthority, names: ['api.test'] } });
  }

  /** Starts from what the store holds, as the process does. */
  function start(state: ScriptedStore): Promise<TestSidecar> {
    return createTestSidecar({
      admin: true,
      state,
      origins: publicAuthority,
      config: { timeouts: { drain_ms: 200 } },
    });
  }

  /** The injected headers of one request through the listener at `port`. */
  async function injectedHeaders(
    proxy: TestSidecar,
    originPort: number,
    port: number = proxy.port,
  ): Promise<readonly string[]> {
    const authority = `api.test:${originPort}`;
    const tls = { ca: `${proxy.caPem}\n${publicAuthority.certificatePem}`, name: 'api.test' };
    await using client = await WireClient.connectThrough(port, authority, tls);
    await client.send(head('GET /', authority));
    const { text } = await client.readResponse();
    const { headers } = JSON.parse(text) as { headers: readonly (readonly [string, string])[] };
    return headers
      .map((field) => field.join(': '))
      .filter((field) => /^X-(?:Count|Opaque|Stored):/.test(field));
  }

  it('I10 atomic: a rejected document changes neither the rules in force nor the store', async () => {
    await using origin = await createOrigins();
    const store = createScriptedStore();
    await using proxy = await start(store);
    expect(await proxy.admin('PUT', CONFIG, documentOf(1))).toMatchObject({ status: 200 });
    const [before, stored] = [await proxy.admin('GET', CONFIG), store.contents.get('default')];
    const [rule] = (documentOf(2) as { rules: readonly unknown[] }).rules;
    for (const bad of [
      { rules: [rule, { ...Object(rule), match_hosts: ['*'] }] },
      documentOf(2, 'MISSING'),
      { ...Object(documentOf(2)), extra: 1 },
    ])
      expect((await proxy.admin('PUT', CONFIG, bad)).status).toBe(422);
    expect((await proxy.admin('PUT', CONFIG, '{"rules": [')).status).toBe(422);
    expect(await proxy.admin('GET', CONFIG)).toEqual(before);
    expect(store.contents.get('default')).toBe(stored);
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(1));
  });

  it('I10 atomic: a write that cannot be stored has no effect, and succeeds once it can be stored', async () => {
    await using origin = await createOrigins();
    const store = createScriptedStore();
    await using proxy = await start(store);
    const box = { id: 'box', listen: '127.0.0.1:0', proxy_config: documentOf(7) };
    const writes = [
      ['PUT', '/v1/workspace_secrets', { STORED: 'second' }],
      ['PUT', CONFIG, documentOf(2, 'STORED')],
      ['PUT', '/v1/sandboxes/box/proxy_config', documentOf(8)],
      ['PATCH', '/v1/sandboxes/box', { limits: { max_connections: 1 }, token: 'generate' }],
      ['POST', '/v1/sandboxes', { id: 'other', listen: '127.0.0.1:0' }],
      ['DELETE', '/v1/sandboxes/box', undefined],
    ] as const;
    await proxy.admin('PUT', '/v1/workspace_secrets', { STORED: 'first' });
    await proxy.admin('PUT', CONFIG, documentOf(1, 'STORED'));
    const made = await proxy.admin('POST', '/v1/sandboxes', box);
    const boxPort = Number(new URL(String(made.body['proxy'])).port);
    const look = async (): Promise<unknown> => [
      ...(await Promise.all(
        [CONFIG, '/v1/workspace_secrets', '/v1/sandboxes', '/v1/sandboxes/box/proxy_config'].map((path) =>
          proxy.admin('GET', path),
        ),
      )),
      new Map(store.contents),
    ];
    const before = await look();
    store.before = () => Promise.reject(new Error('no space left on device'));
    for (const [method, path, body] of writes)
      expect([path, (await proxy.admin(method, path, body)).status]).toEqual([path, 500]);
    expect(await look()).toEqual(before);
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(1, 'first'));
    expect(await injectedHeaders(proxy, origin.port, boxPort)).toEqual(counted(7));
    store.before = () => undefined;
    for (const [method, path, body] of writes)
      expect((await proxy.admin(method, path, body)).status).toBeLessThan(300);
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(2, 'second'));
    expect([...store.contents.keys()].toSorted()).toEqual(['default', 'other']);
  });

  it('I10 atomic: nothing is in force before it is stored', async () => {
    const { opened, open } = gate();
    await using origin = await createOrigins();
    const store = createScriptedStore();
    await using proxy = await start(store);
    const first = await proxy.admin('PUT', CONFIG, documentOf(1));
    const writing = Promise.withResolvers<void>();
    store.before = () => {
      writing.resolve();
      return opened;
    };
    const put = proxy.admin('PUT', CONFIG, documentOf(2));
    await writing.promise;
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(1));
    expect((await proxy.admin('GET', CONFIG)).etag).toBe(first.etag);
    open();
    expect((await put).status).toBe(200);
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(2));
  });

  it.each(['If-Match', 'etag'])(
    'I10 atomic: exactly one of several writers to one revision (%s) succeeds, in force and in the store',
    async (how) => {
      await using origin = await createOrigins();
      const store = createScriptedStore();
      await using proxy = await start(store);
      let { etag = '' } = await proxy.admin('PUT', CONFIG, documentOf(0));
      for (let round = 1; round <= 10; round += 1) {
        const replies = await Promise.all(
          [0, 1, 2, 3].map((writer) => {
            const document = documentOf(round * 10 + writer);
            return how === 'If-Match'
              ? proxy.admin('PUT', CONFIG, document, [`If-Match: ${etag}`])
              : proxy.admin('PUT', CONFIG, { proxy_config: document, etag });
          }),
        );
        expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 412, 412, 412]);
        const winner = replies.findIndex(({ status }) => status === 200);
        ({ etag = '' } = replies[winner] ?? {});
        expect(await proxy.admin('GET', CONFIG)).toMatchObject({ etag, body: { revision: round + 1 } });
        expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(round * 10 + winner));
        expect(store.contents.get('default')).toContain(`"opaque-${round * 10 + winner}"`);
      }
    },
  );

  it('I10 atomic: a write that a change of the operator preceded is rejected and not stored', async () => {
    const { opened, open } = gate();
    await using origin = await createOrigins();
    const store = createScriptedStore();
    const proxy = await start(store);
    const { etag } = await proxy.admin('PUT', CONFIG, documentOf(1));
    const writing = Promise.withResolvers<void>();
    store.before = () => {
      writing.resolve();
      return opened;
    };
    const put = proxy.admin('PUT', CONFIG, documentOf(2), [`If-Match: ${etag}`]);
    await writing.promise;
    // As SIGHUP does.
    expect(proxy.sidecar.reapply(() => undefined)).toMatchObject({ ok: true, revision: 2 });
    open();
    expect((await put).status).toBe(412);
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(1));
    await proxy[Symbol.asyncDispose]();
    await using next = await start(store);
    expect(await injectedHeaders(next, origin.port)).toEqual(counted(1));
  });

  it('I10 atomic: a write without a condition replaces the change of the operator', async () => {
    const { opened, open } = gate();
    await using origin = await createOrigins();
    const store = createScriptedStore();
    await using proxy = await start(store);
    await proxy.admin('PUT', CONFIG, documentOf(1));
    const writing = Promise.withResolvers<void>();
    store.before = () => {
      writing.resolve();
      return opened;
    };
    const put = proxy.admin('PUT', CONFIG, documentOf(2));
    await writing.promise;
    expect(proxy.sidecar.reapply(() => undefined)).toMatchObject({ ok: true, revision: 2 });
    open();
    expect(await put).toMatchObject({ status: 200, body: { revision: 3 } });
    expect(await injectedHeaders(proxy, origin.port)).toEqual(counted(2));
  });

  it('I10 atomic: after any writes and failures, a start restores what was in force', async () => {
    await using origin = await createOrigins();
    const step = fc.record({
      what: fc.constantFrom('config', 'config', 'secret', 'bad'),
      fails: fc.constantFrom(false, false, true),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const store = createScriptedStore();
        const proxy = await start(store);
        await proxy.admin('PUT', '/v1/workspace_secrets', { STORED: 'value-0' });
        await proxy.admin('PUT', CONFIG, documentOf(0, 'STORED'));
        let [inForce, secret] = [counted(0, 'value-0'), 'value-0'];
        for (const [i, { what, fails }] of steps.entries()) {
          store.before = () => (fails ? Promise.reject(new Error('no')) : undefined);
          const count = i + 1;
          const [path, body] =
            what === 'secret'
              ? ['/v1/workspace_secrets', { STORED: `value-${count}` }]
              : [CONFIG, documentOf(count, what === 'bad' ? 'MISSING' : 'STORED')];
          const { status } = await proxy.admin('PUT', path, body);
          expect(status).toBe(what === 'bad' ? 422 : fails ? 500 : 200);
          if (status !== 200) continue;
          if (what === 'secret') secret = `value-${count}`;
          else inForce = counted(count, secret);
        }
        expect(await injectedHeaders(proxy, origin.port)).toEqual(inForce);
        const shown = await proxy.admin('GET', CONFIG);
        await proxy[Symbol.asyncDispose]();
        await using next = await start(store);
        expect(await next.admin('GET', CONFIG)).toEqual(shown);
        expect(await injectedHeaders(next, origin.port)).toEqual(inForce);
      }),
      // Every run includes at least one value that changed after its use.
      { numRuns: 5, examples: [[[{ what: 'secret', fails: false }]]] },
    );
  });
});

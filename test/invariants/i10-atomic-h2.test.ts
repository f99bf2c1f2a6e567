// I10 over HTTP/2: a stream sees one revision of the rules from start to end. Documents are replaced at every stage of a
// stream, also while other streams are open; the origin sees which document applied.
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { type H2Exchange, echoStream } from '../support/h2-exchange.ts';
import { ACK, headersFrame } from '../support/h2-frames.ts';
import { type H2WireClient, fieldOf, refusalOf } from '../support/h2-wire-client.ts';
import { encodeBlock } from '../support/hpack.ts';
import { bearerRule, publicAuthority } from './credential-scene.ts';
import { type H2Scene, type H2SceneOptions, createH2Scene } from './h2-scene.ts';
import {
  type Mark,
  respondMarked,
  carrying,
  markedCallback,
  markedRule,
  markSecrets,
  marksIn,
} from './revision-scene.ts';

function createScene(options: H2SceneOptions = {}): Promise<H2Scene> {
  return createH2Scene({ rules: [markedRule('old')], secrets: markSecrets, ...options });
}

function swap({ proxy }: H2Scene, document: unknown = { rules: [markedRule('new')] }): void {
  expect(proxy.apply(document)).toMatchObject({ ok: true });
}

/** Every stream that arrived was decided by the document with the mark; the records agree, in any order. */
async function expectJudgedBy(scene: H2Scene, marks: readonly Mark[]): Promise<void> {
  expect(scene.origin.streams.map(marksIn)).toEqual(marks.map(carrying));
  await scene.proxy.record(marks.length - 1);
  const judged = scene.proxy
    .records()
    .map(({ revision, protocol, injected }) => [revision, protocol, injected]);
  const name = (field: string): unknown => expect.stringMatching(new RegExp(`^${field.split(':')[0]}$`, 'i'));
  const expected = marks.map((mark) => [mark === 'old' ? 1 : 2, 'h2', carrying(mark).map(name)]);
  expect(judged.toSorted((a, b) => Number(a[0]) - Number(b[0]))).toEqual(expected);
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Streams for `/held` wait for `gate`. */
function holding(opened: Promise<void>): (exchange: H2Exchange) => Promise<void> {
  return async (exchange) => {
    if (exchange.request.path === '/held') await opened;
    await echoStream(exchange);
  };
}

/** A client whose stream /held fills its session, so that others wait for a new session; `act` runs in each handshake. */
async function withBusyClient(
  act: (scene: H2Scene) => void,
  test: (scene: H2Scene, client: H2WireClient) => Promise<void>,
): Promise<void> {
  const { opened, open } = gate();
  let seen = 1;
  const contextFor: typeof publicAuthority.contextFor = (name) => {
    // Called more than once in a handshake; the first call is for the client's own session.
    if (scene.origin.connections.length > seen) {
      seen = scene.origin.connections.length;
      act(scene);
    }
    return publicAuthority.contextFor(name);
  };
  const tls = { authority: { ...publicAuthority, contextFor }, names: ['api.test'] };
  const origin = { tls, settings: { max_concurrent_streams: 1 } };
  await using scene: H2Scene = await createScene({ origin, respond: holding(opened) });
  await using client = await scene.client();
  const held = client.request(client.fields('/held'));
  await scene.origin.stream(0);
  await test(scene, client);
  open();
  expect((await held).status).toBe(200);
}

describe('I10 atomic: rules that change during a stream', () => {
  it('I10 atomic: after half a header block: the new rules decide the stream', async () => {
    await using scene = await createScene();
    await using client = await scene.client();
    // Otherwise the client's own acknowledgement may be written into the middle of the frame.
    await client.frame(({ type, flags }) => type === 'SETTINGS' && (flags & ACK) !== 0);
    const block = encodeBlock(client.fields('/'));
    const bytes = headersFrame(client.nextId(), block, { split: 20, isEnd: true });
    await client.send(bytes.subarray(0, 40));
    // When this response arrives, the proxy has read all that was sent before.
    await using _bystander = await scene.client();
    swap(scene);
    await client.send(bytes.subarray(40));
    expect((await client.response(client.peer.stream(1))).status).toBe(200);
    await expectJudgedBy(scene, ['new']);
  });

  it('I10 atomic: before a stream begins: neither its connection nor its protocol belongs to a revision', async () => {
    const { opened, open } = gate();
    await using scene = await createScene({ respond: holding(opened) });
    await using client = await scene.client();
    const held = client.request(client.fields('/held'));
    await scene.origin.stream(0);
    swap(scene);
    expect((await client.request(client.fields('/next'))).status).toBe(200);
    open();
    expect((await held).status).toBe(200);
    await expectJudgedBy(scene, ['old', 'new']);
    expect(new Set(scene.origin.streams.map(({ connection }) => connection)).size).toBe(2);
  });

  it('I10 atomic: during the probe of a host: the connection dialled under the old rules is not used', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    await using scene = await createScene({ resolve: { 'api.test': promise } });
    const connecting = scene.client();
    await expect.poll(() => scene.proxy.lookups).toEqual(['api.test']);
    swap(scene);
    resolve(['127.0.0.1']);
    await using client = await connecting;
    expect((await client.request(client.fields('/'))).status).toBe(200);
    await expectJudgedBy(scene, ['new']);
    expect(scene.origin.streams[0]?.connection).toBe(1);
  });

  it('I10 atomic: during a dial that the old rules refuse: the host is dialled again', async () => {
    await using scene = await createScene();
    scene.proxy.apply({ rules: [markedRule('old')], access_control: { deny_list: ['127.0.0.0/8'] } });
    await using client = await scene.client();
    expect(scene.origin.connections).toEqual([]);
    swap(scene);
    expect((await client.request(client.fields('/'))).status).toBe(200);
    expect(scene.origin.streams.map(marksIn)).toEqual([carrying('new')]);
  });

  it.each([false, true])(
    'I10 atomic: during a callback, beside another stream (%s): the result of the old callback is not used',
    async (hasOther) => {
      const [called, responded] = [gate(), gate()];
      let nowMs = 0;
      const calledMarks: Mark[] = [];
      const response = respondMarked((mark) => {
        calledMarks.push(mark);
        return calledMarks.length === 2 ? called.opened : undefined;
      });
      await using endpoint = await createCallbackEndpoint(response);
      await using scene = await createScene({
        names: ['called.test'],
        rules: [],
        callbacks: [markedCallback('old', endpoint.url)],
        now: () => nowMs,
        respond: holding(responded.opened),
      });
      await using client = await scene.client('called.test');
      const first = client.request(client.fields(hasOther ? '/held' : '/warm'));
      await (hasOther ? scene.origin.stream(0) : first);
      // The cached result has expired; the session has not.
      nowMs += 61_000;
      const late = client.request(client.fields('/late'));
      await expect.poll(() => calledMarks, { timeout: 4_000 }).toEqual(['old', 'old']);
      swap(scene, { callbacks: [markedCallback('new', endpoint.url)] });
      called.open();
      expect((await late).status).toBe(200);
      responded.open();
      expect((await first).status).toBe(200);
      await expectJudgedBy(scene, ['old', 'new']);
      expect(scene.origin.streams.at(-1)?.connection).not.toBe(0);
    },
  );

  it('I10 atomic: during the dial of a session: the stream is decided again', async () => {
    let hasSwapped = false;
    const once = (scene: H2Scene): void => {
      if (!hasSwapped) swap(scene);
      hasSwapped = true;
    };
    await withBusyClient(once, async (scene, client) => {
      expect((await client.request(client.fields('/'))).status).toBe(200);
      expect(scene.origin.streams.map(marksIn)).toEqual([carrying('old'), carrying('new')]);
      expect(await scene.proxy.record(0)).toMatchObject({ revision: 2, protocol: 'h2', outcome: 'injected' });
    });
    expect(hasSwapped).toBe(true);
  });

  it('I10 atomic: a waiting stream whose rule is revoked is refused and never sent', async () => {
    const revoke = (scene: H2Scene): void => swap(scene, { access_control: { deny_list: ['api.test'] } });
    await withBusyClient(revoke, async (scene, client) => {
      const response = await client.request(client.fields('/late'));
      expect([response.status, refusalOf(response)]).toEqual([403, 'access_denied']);
      expect(scene.origin.streams.map(({ path }) => path)).toEqual(['/held']);
      expect(await scene.proxy.record(0)).toMatchObject({ revision: 2, protocol: 'h2', status: 403 });
    });
  });

  it('I10 atomic: during every dial attempt: the stream is refused, and nothing was sent', async () => {
    await withBusyClient(swap, async (scene, client) => {
      const response = await client.request(client.fields('/late'));
      expect([response.status, refusalOf(response)]).toEqual([503, 'rules_changed']);
      expect(scene.origin.streams.map(({ path }) => path)).toEqual(['/held']);
    });
  });

  it('I10 atomic: during a request body: the stream ends under the old rules, and its session is not reused', async () => {
    await using scene = await createScene();
    await using client = await scene.client();
    const stream = await client.open(client.fields('/', [], { ':method': 'POST' }));
    await stream.data('half');
    await scene.origin.stream(0);
    swap(scene);
    await stream.data('half', { isEnd: true });
    expect((await client.response(stream)).status).toBe(200);
    await client.request(client.fields('/next'));
    await expectJudgedBy(scene, ['old', 'new']);
    expect(scene.origin.streams.map(({ body }) => body.length)).toEqual([8, 0]);
    expect(scene.origin.streams.map(({ connection }) => connection)).toEqual([0, 1]);
  });

  it('I10 atomic: before the response: the old secret is masked to the end', async () => {
    const { opened, open } = gate();
    await using scene = await createScene({
      async respond({ request, interim, head, trailers }) {
        await opened;
        const echo = [['x-echo', request.values('x-opaque').join()]] as const;
        await interim(103, echo);
        await head(200, echo);
        await trailers(echo);
      },
    });
    await using client = await scene.client();
    const pending = client.request(client.fields('/'));
    await scene.origin.stream(0);
    swap(scene);
    open();
    const response = await pending;
    const heads = [response, ...response.interim, { status: 0, headers: response.trailers ?? [] }];
    expect(heads.map((one) => fieldOf(one, 'x-echo'))).toEqual(
      heads.map(() => '*'.repeat('opaque-old'.length)),
    );
    await expectJudgedBy(scene, ['old']);
  });

  it('I10 atomic: before a retry of a refused stream: the stream is decided again', async () => {
    await using scene: H2Scene = await createScene({
      async respond(exchange) {
        if (exchange.request.path !== '/again' || exchange.request.connection !== 0)
          return echoStream(exchange);
        swap(scene);
        await exchange.reset('REFUSED_STREAM');
      },
    });
    await using client = await scene.client();
    for (const path of ['/warm', '/again'])
      expect((await client.request(client.fields(path))).status).toBe(200);
    expect(scene.origin.streams.map(marksIn)).toEqual([carrying('old'), carrying('old'), carrying('new')]);
    expect(scene.proxy.records().map(({ revision }) => revision)).toEqual([1, 2]);
  });
});

describe('I10 atomic: many streams and many revisions', () => {
  it('I10 atomic: no stream carries values of two revisions', async () => {
    const rulesOf = (count: number): unknown => ({
      rules: [
        bearerRule('api.test', {
          headers: ['X-One', 'X-Two', `X-${count}`].map((name) => ({
            name,
            type: 'opaque',
            value: `value ${count}`,
          })),
        }),
      ],
    });
    await using scene = await createH2Scene(rulesOf(1) as H2SceneOptions);
    const clients = [await scene.client(), await scene.client()];
    let [revision, path] = [1, 0];
    const turn = (): Promise<void> => new Promise((next) => setImmediate(next));
    const turns = fc.array(fc.tuple(fc.nat(6), fc.nat(5)), { minLength: 2, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(turns, async (steps) => {
        const pending: Promise<unknown>[] = [];
        for (const [count, pause] of steps) {
          for (let i = 0; i < count; i += 1)
            for (const client of clients) pending.push(client.request(client.fields(`/${(path += 1)}`)));
          for (let i = 0; i < pause; i += 1) await turn();
          swap(scene, rulesOf((revision += 1)));
        }
        for (const response of await Promise.all(pending)) expect(response).toMatchObject({ status: 200 });
      }),
      { numRuns: 10 },
    );
    await scene.proxy.record(path - 1);
    const byPath = new Map(
      scene.proxy.records().map((record) => [record['path'], Number(record['revision'])]),
    );
    for (const { path: place, headers } of scene.origin.streams) {
      const own = byPath.get(place) ?? 0;
      const marks = headers.filter(([name]) => /^x-(?:one|two|\d+)$/.test(name));
      expect(marks).toEqual(['x-one', 'x-two', `x-${own}`].map((name) => [name, `value ${own}`]));
    }
    expect(scene.origin.streams).toHaveLength(path);
  });
});

// I11 over HTTP/2: every stream, refusal and end leaves exactly one record with the name of its sandbox, the revision that
// decided it, and the version HTTP/2. While records cannot be written, no stream begins.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { refusalCatalogue } from '../../src/proxy/refusal.ts';
import { createMemoryStore } from '../sidecar/state/memory-store.ts';
import { echoStream } from '../support/h2-exchange.ts';
import { dataFrame, pingFrame } from '../support/h2-frames.ts';
import { H2WireClient, refusalOf } from '../support/h2-wire-client.ts';
import type { LogRecord } from '../support/spawned-process.ts';
import { bearerRule } from './credential-scene.ts';
import { type H2Scene, type H2SceneOptions, createH2Scene } from './h2-scene.ts';
import { streamRefusals } from './record-refusals-h2.ts';
import { REVISION, createBox, isRecord, shortly } from './record-scene.ts';
import { type BoxScene, ends, situations } from './record-situations-h2.ts';
import { everyNth } from '../support/run-size.ts';

const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => 'broken');
});
vi.mock('../../src/proxy/gate/request-plan.ts', async (original) => breakable.plan(await original()));
beforeEach(() => broken.clear());

/** All records of clients, with their HTTP version, once everything has ended. */
async function inTheEnd({ proxy }: H2Scene): Promise<readonly string[]> {
  await proxy.sidecar.close();
  return proxy.lines
    .filter(isRecord)
    .map((record) => `${shortly(record)} ${String(record['protocol'] ?? '-')}`);
}

const silence = (): Promise<void> => new Promise(() => {});
const injected = 'exchange default 1 injected 200 - h2';

describe('I11 accountable: decisions on a stream', () => {
  type Row = {
    readonly title: string;
    readonly options?: H2SceneOptions;
    act(scene: H2Scene, client: H2WireClient): Promise<unknown>;
    readonly records: readonly string[];
  };
  const get = (client: H2WireClient, path: string): Promise<unknown> => client.request(client.fields(path));
  const rows: readonly Row[] = [
    { title: 'a stream that is injected', act: (_, client) => get(client, '/'), records: [injected] },
    {
      title: 'each of five concurrent streams',
      act: (_, client) => Promise.all([1, 2, 3, 4, 5].map((i) => get(client, `/${i}`))),
      records: Array.from({ length: 5 }, () => injected),
    },
    {
      title: 'a stream without a rule',
      options: { rules: [bearerRule('api.test', { match_paths: ['/v1/*'] })] },
      act: (_, client) => get(client, '/'),
      records: ['exchange default 1 forwarded 200 no_path_match h2'],
    },
    {
      title: 'a stream that is sent twice',
      options: {
        respond: (exchange) =>
          exchange.request.id === 1 ? void exchange.reset('REFUSED_STREAM') : echoStream(exchange),
      },
      act: (_, client) => get(client, '/'),
      records: [injected],
    },
    {
      title: 'a stream that its host resets',
      options: { respond: ({ reset }) => void reset('CANCEL') },
      act: (_, client) => get(client, '/'),
      records: ['exchange default 1 failed - upstream_reset h2'],
    },
    {
      title: 'a response that its host truncates',
      options: {
        respond: async ({ head, connection }) => {
          await head(200, [['content-length', '9']]);
          connection.destroy();
        },
      },
      act: (_, client) => get(client, '/'),
      records: [
        expect.stringMatching(/^exchange default 1 failed 200 upstream_(reset|truncated|closed) h2$/),
      ],
    },
    {
      title: 'a stream that its client resets',
      options: { respond: silence },
      async act(scene, client) {
        const stream = await client.open(client.fields('/'), { isEnd: true });
        await scene.origin.stream(0);
        await stream.reset();
        await scene.proxy.record(0);
      },
      records: ['exchange default 1 failed - client_gone h2'],
    },
    {
      title: 'a stream whose host now speaks only HTTP/1.1',
      async act(scene) {
        const wire = await scene.wire();
        await wire.openTunnel(scene.at());
        await wire.startTls({ ca: scene.proxy.caPem, name: 'api.test', alpn: ['h2', 'http/1.1'] });
        const client = await H2WireClient.over(wire, scene.at());
        scene.origin.offer(['http/1.1']);
        // An open session is not probed again.
        scene.proxy.apply({ rules: [bearerRule('api.test')] });
        expect(await client.request(client.fields('/'))).toMatchObject({ reset: 'REFUSED_STREAM' });
      },
      records: ['exchange default 2 failed - alpn_changed h2', 'exchange default 1 failed - shutting_down -'],
    },
    {
      title: 'a session that breaks the protocol, and the stream on it,',
      options: { respond: silence },
      async act(scene, client) {
        await client.open(client.fields('/'), { isEnd: true });
        await scene.origin.stream(0);
        await client.send(dataFrame(0, 'x'));
        await client.closed;
      },
      records: [
        'exchange default 1 failed - client_protocol_error h2',
        'exchange default 1 failed - client_gone h2',
      ],
    },
    {
      title: 'a flood',
      async act(_, client) {
        for (
          let i = 0;
          i < 100 && (await client.send(...Array.from({ length: 100 }, () => pingFrame())));
          i += 1
        );
        await client.closed;
      },
      records: ['exchange default 1 failed - client_flood h2'],
    },
  ];

  it.each(rows)('I11 accountable: over h2, $title leaves a record', async ({ options, act, records }) => {
    await using scene = await createH2Scene(options);
    // A row that uses a connection of its own leaves this one unused.
    await act(scene, await scene.client());
    expect((await inTheEnd(scene)).toSorted()).toEqual(records.toSorted());
  });
});

describe('I11 accountable: refusals over HTTP/2', () => {
  it.each(streamRefusals)('I11 accountable: over h2, $code leaves one record', async (row) => {
    const { code, options, provoke, isHttp1 = false } = row;
    await using scene = await createH2Scene(options);
    const { status } = refusalCatalogue().find((one) => one.code === code) ?? {};
    expect(await provoke(scene)).toEqual([status, code]);
    const record = await scene.proxy.record(0);
    // The rules change while the client reads.
    const revision = code === 'rules_changed' ? expect.any(Number) : scene.proxy.sidecar.revision;
    expect(record).toMatchObject({ sandbox: 'default', revision, reason: code, status });
    expect([record['protocol'], ['refused', 'failed']]).toEqual([
      isHttp1 ? undefined : 'h2',
      expect.arrayContaining([record['outcome']]),
    ]);
    // The drain would wait for a client that is still connected.
    await scene.leave();
    await scene.proxy.sidecar.close();
    const others = scene.proxy.records().filter((one) => one !== record);
    // Streams that were queued before the refused one.
    expect(others.map(({ path }) => path)).toEqual(code === 'rules_changed' ? ['/held'] : []);
  });

  it('I11 accountable: over h2, an internal error leaves one record', async () => {
    await using scene = await createH2Scene();
    await using client = await scene.client();
    broken.add('plan');
    expect(refusalOf(await client.request(client.fields('/')))).toBe('internal_error');
    expect(await inTheEnd(scene)).toEqual(['exchange default 1 refused 500 internal_error h2']);
  });

  it('I11 accountable: while records cannot be written, no stream begins; afterwards streams begin again', async () => {
    await using scene = await createH2Scene();
    await using client = await scene.client();
    scene.proxy.blockSink(true);
    const ask = (): Promise<number> => client.request(client.fields('/')).then(({ status }) => status);
    expect(await Promise.all([ask(), ask()])).toEqual([503, 503]);
    expect(scene.origin.streams).toEqual([]);
    scene.proxy.blockSink(false);
    expect(await ask()).toBe(200);
    const blocked = 'exchange default 1 refused 503 record_sink_blocked h2';
    expect(await inTheEnd(scene)).toEqual([blocked, blocked, injected]);
  });
});

describe('I11 accountable: aborted exchanges over HTTP/2', () => {
  const cuts = situations.flatMap((situation) => ends.map((end) => ({ ...situation, ...end })));
  everyNth(2, cuts, (some, options) =>
    it.each(some)('I11 accountable: over h2, $title leaves one record when $by', options, async (row) => {
      const { options = {}, begin, end, streams } = row;
      const store = createMemoryStore();
      // A stream that lasts for ever is aborted at the end of the drain.
      const config = () => ({ timeouts: { drain_ms: 20 } });
      await using made = await createH2Scene({ config, ...options, sidecar: { admin: true, state: store } });
      const scene: BoxScene = { ...made, ...(await createBox(made.proxy, store, options)) };
      await using client = await begin(scene);
      expect(scene.records()).toEqual([]);
      const writes = (await end(scene, client)) ?? [];
      await scene.proxy.record(Math.max(streams, 1) - 1);
      await scene.proxy.sidecar.close();
      const isExchange = ({ msg }: LogRecord): boolean => msg === 'exchange';
      const own = { sandbox: 'box', revision: REVISION['box'], outcome: 'failed' };
      const records = scene.records().filter(isExchange);
      expect(records).toMatchObject(Array.from({ length: Math.max(streams, 1) }, () => own));
      expect(records.map(({ method }) => method === 'CONNECT')).toEqual(records.map(() => streams === 0));
      expect(
        scene
          .records()
          .filter((one) => !isExchange(one))
          .map(shortly),
      ).toEqual(writes);
    }),
  );
});

// I11: every decision and every write to the admin API leaves exactly one record with the name of its sandbox and the
// revision that decided it. While records cannot be written, nothing begins that needs a record.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type RefusalCode, refusalCatalogue } from '../../src/proxy/refusal.ts';
import { createAdminScene, request } from '../admin/admin-scene.ts';
import { type Exchange, echo } from '../support/recording-origin.ts';
import { headerValues } from '../support/message-reader.ts';
import { WireClient } from '../support/wire-client.ts';
import {
  bearerRule,
  createScene,
  head,
  publicAuthority,
  type Scene,
  type SceneOptions,
} from './credential-scene.ts';
import { streamRefusals } from './record-refusals-h2.ts';
import { refusals } from './record-refusals.ts';
import {
  createRecordScene,
  isRecord,
  REVISION,
  type RecordScene,
  SHOWN,
  shortly,
  TOKEN,
} from './record-scene.ts';
import { situations } from './record-situations.ts';
import { everyNth } from '../support/run-size.ts';

const { broken, breakable } = await vi.hoisted(async () => {
  const { createBreakableParts } = await import('./breakable-parts.ts');
  return createBreakableParts(() => 'broken');
});
vi.mock('../../src/proxy/gate/request-plan.ts', async (original) => breakable.plan(await original()));
beforeEach(() => broken.clear());

/** All records of clients once everything has ended. The drain would wait for a client that is still connected. */
async function inTheEnd(scene: Scene, client?: WireClient): Promise<readonly string[]> {
  await client?.[Symbol.asyncDispose]();
  await scene.proxy.sidecar.close();
  return scene.proxy.lines.filter(isRecord).map(shortly);
}

/** A connection serves its first request and then closes on the second. */
async function closeAtSecond(exchange: Exchange): Promise<void> {
  const { connection, target } = exchange.request;
  if (connection === 0 && target === '/2') exchange.end();
  else await echo(exchange);
}

describe('I11 accountable: decisions', () => {
  type Row = {
    readonly title: string;
    readonly options?: SceneOptions;
    act(scene: Scene): Promise<void>;
    readonly records: readonly string[];
  };

  async function get(scene: Scene, paths: readonly string[], fields: readonly string[] = []): Promise<void> {
    await using client = await scene.tunnel();
    for (const path of paths) {
      await client.send(head(`GET ${path}`, scene.at(), fields));
      await client.readResponse();
    }
  }

  const injected = 'exchange default 1 injected 200 -';
  const served = 'exchange default 1 served 200 -';
  const rows: readonly Row[] = [
    { title: 'a request that is injected', act: (scene) => get(scene, ['/']), records: [injected] },
    {
      title: 'each of three requests on one connection',
      act: (scene) => get(scene, ['/1', '/2', '/3']),
      records: [injected, injected, injected],
    },
    {
      title: 'each request to the reserved host',
      options: { now: () => 0 },
      async act(scene) {
        await using client = await scene.client();
        const request = head('GET http://sallyport.internal/', 'sallyport.internal');
        await client.send(request.repeat(11));
        for (let read = 0; read < 11; read += 1) await client.readResponse();
      },
      records: [
        ...Array.from({ length: 10 }, () => served),
        'exchange default 1 refused 429 too_many_requests',
      ],
    },
    {
      title: 'the CA certificate on the proxy port',
      async act(scene) {
        await using client = await scene.client();
        await client.send('GET /ca.pem HTTP/1.1\r\n\r\n');
        await client.readResponse();
      },
      records: [served],
    },
    {
      title: 'each of three pipelined requests',
      async act(scene) {
        await using client = await scene.tunnel();
        await client.send(['/1', '/2', '/3'].map((path) => head(`GET ${path}`, scene.at())).join(''));
        for (let read = 0; read < 3; read += 1) await client.readResponse();
      },
      records: [injected, injected, injected],
    },
    {
      title: 'a request without a rule',
      options: { rules: [bearerRule('api.test', { match_paths: ['/v1/*'] })] },
      act: (scene) => get(scene, ['/']),
      records: ['exchange default 1 forwarded 200 no_path_match'],
    },
    {
      title: 'a plaintext request',
      options: { tls: 'clear', rules: [] },
      async act(scene) {
        await using client = await scene.client();
        await client.send(head(`GET http://${scene.at()}/`, scene.at()));
        await client.readResponse();
      },
      records: ['exchange default 1 forwarded 200 no_match'],
    },
    {
      title: 'a blind tunnel',
      options: { rules: [] },
      async act(scene) {
        await using client = await scene.client();
        await client.openTunnel(scene.at());
        client.end();
        await client.finished;
        await scene.proxy.record(0);
      },
      records: ['exchange default 1 tunnelled 200 no_match'],
    },
    {
      title: 'a request that is sent twice because its connection was closed',
      options: { respond: closeAtSecond },
      act: (scene) => get(scene, ['/1', '/2']),
      records: [injected, injected],
    },
    {
      title: 'a response that its host truncates',
      options: {
        respond: async ({ send, end }) => {
          await send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx');
          end();
        },
      },
      async act(scene) {
        await using client = await scene.tunnel();
        await client.send(head('GET /', scene.at()));
        await client.finished;
      },
      records: ['exchange default 1 failed 200 upstream_truncated'],
    },
    {
      title: 'a ClientHello that names another host',
      async act(scene) {
        await scene.tunnel('api.test', { serverName: 'other.test' }).catch(() => undefined);
        await scene.proxy.record(0);
      },
      records: ['exchange default 1 failed - sni_mismatch'],
    },
    {
      title: "a client that rejects the proxy's certificate",
      async act(scene) {
        await scene.tunnel('api.test', { ca: publicAuthority.certificatePem }).catch(() => undefined);
        await scene.proxy.record(0);
      },
      records: ['exchange default 1 failed - handshake_aborted'],
    },
    {
      title: 'a client above the limit of its sandbox, and the one before it,',
      options: { config: () => ({ limits: { max_connections: 1 } }) },
      async act(scene) {
        await using first = await scene.tunnel();
        await using second = await scene.client();
        await second.openTunnel(scene.at());
        first.end();
        await scene.proxy.record(1);
      },
      records: [
        'exchange default 1 refused 503 too_many_connections',
        'exchange default 1 failed - client_gone',
      ],
    },
    {
      title: 'a tunnel with neither TLS nor HTTP',
      async act(scene) {
        await using client = await scene.client();
        await client.openTunnel(scene.at());
        await client.send('\x00\x01\x02\x03\x04\x05');
        await client.finished;
      },
      records: ['exchange default 1 failed - not_tls_nor_http'],
    },
    {
      title: 'neither a health probe nor a silent connection',
      async act(scene) {
        await using probe = await scene.client();
        await probe.send(head('GET /healthz', 'localhost'));
        await probe.readResponse();
        await using idle = await scene.client();
        idle.end();
        await idle.finished;
      },
      records: [],
    },
  ];

  it.each(rows)('I11 accountable: $title leaves a record', async ({ options, act, records }) => {
    await using scene = await createScene(options);
    await act(scene);
    expect(await inTheEnd(scene)).toEqual(records);
  });
});

describe('I11 accountable: refusals', () => {
  it.each(refusals)('I11 accountable: $code leaves one record', async ({ code, options, provoke }) => {
    await using scene = await createScene(options);
    await using client = await provoke(scene);
    const { head: response } = await client.readResponse();
    const { status } = refusalCatalogue().find((one) => one.code === code) ?? {};
    expect([response.status, headerValues(response, 'x-sallyport-error')]).toEqual([status, [code]]);
    const record = await scene.proxy.record(0);
    expect(record).toMatchObject({
      sandbox: 'default',
      revision: scene.proxy.sidecar.revision,
      reason: code,
      status,
    });
    expect(['refused', 'failed']).toContain(record['outcome']);
    await inTheEnd(scene, client);
    expect(scene.proxy.records()).toEqual([record]);
  });

  it.each(['http', 'tunnel'] as const)(
    'I11 accountable: an internal error leaves one record: %s',
    async (protocol) => {
      await using scene = await createScene();
      await using client = protocol === 'http' ? await scene.client() : await scene.tunnel();
      broken.add('plan');
      await client.send(head(protocol === 'http' ? `GET http://${scene.at()}/` : 'GET /', scene.at()));
      expect((await client.readResponse()).head.status).toBe(500);
      expect(await inTheEnd(scene, client)).toEqual(['exchange default 1 refused 500 internal_error']);
    },
  );

  it('I11 accountable: every refusal of the catalogue is tested', () => {
    const provoked = new Set<string>([...refusals, ...streamRefusals].map(({ code }) => code));
    // A draining listener accepts no connections; the tests below show the records of exchanges that it aborts.
    // `too_many_requests` comes after ten other records: it has a row above.
    const others: readonly RefusalCode[] = ['internal_error', 'shutting_down', 'too_many_requests'];
    const all = refusalCatalogue().map(({ code }) => code);
    expect(all.filter((code) => !provoked.has(code)).toSorted()).toEqual(others.toSorted());
  });
});

type End = {
  readonly by: string;
  readonly hasOwnListener?: boolean;
  /** Returns the other records that it causes. */
  end(scene: RecordScene, client: WireClient): Promise<readonly string[]>;
};

async function remove({ proxy }: RecordScene): Promise<readonly string[]> {
  expect((await proxy.admin('DELETE', '/v1/sandboxes/box')).status).toBe(204);
  return ['admin sandbox.remove box - done 204 -'];
}

const ends: readonly End[] = [
  {
    by: 'its client closes',
    async end(_, client) {
      client.end();
      return [];
    },
  },
  {
    by: 'its client resets',
    async end(_, client) {
      client.reset();
      return [];
    },
  },
  {
    by: 'the process stops',
    async end({ proxy }) {
      await proxy.sidecar.close();
      return [];
    },
  },
  { by: 'its sandbox is removed', end: remove },
  { by: 'its sandbox is removed with its listener', hasOwnListener: true, end: remove },
  {
    by: 'its token is changed',
    async end({ proxy }) {
      expect((await proxy.admin('PATCH', '/v1/sandboxes/box', { token: `${TOKEN}-anew` })).status).toBe(200);
      return ['admin sandbox.change box 1 done 200 -'];
    },
  },
];

const cuts = situations.flatMap((situation) => ends.map((end) => ({ ...situation, ...end })));

describe('I11 accountable: aborted exchanges', () => {
  everyNth(2, cuts, (some, options) =>
    it.each(some)('I11 accountable: $title leaves one record when $by', options, async (row) => {
      const { options, begin, end, hasOwnListener = false, outcome } = row;
      // An exchange that lasts for ever is aborted at the end of the drain.
      const config = () => ({ timeouts: { drain_ms: 20 } });
      await using scene = await createRecordScene({ config, ...options, hasOwnListener });
      await using client = await begin(scene);
      expect(scene.records()).toEqual([]);
      const writes = await end(scene, client);
      const record = await scene.proxy.record(0);
      await scene.proxy.sidecar.close();
      expect(record).toMatchObject({ sandbox: 'box', revision: REVISION['box'], outcome });
      const others = scene.records().filter((one) => one !== record);
      expect(others.map(shortly)).toEqual(writes);
    }),
  );
});

describe('I11 accountable: the sandbox', () => {
  it('I11 accountable: each sandbox has its own name and its own revision', async () => {
    await using scene = await createRecordScene({ tls: 'clear', rules: [] });
    const target = `GET http://${scene.at()}/`;
    for (const fields of [[], [SHOWN], ['Proxy-Authorization: Bearer nobody']]) {
      await using client = await scene.client();
      await client.send(head(target, scene.at(), fields));
      await client.readResponse();
    }
    scene.proxy.apply({ rules: [] });
    await scene.proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', { rules: [] });
    await using client = await scene.client();
    await client.send(head(target, scene.at(), [SHOWN]));
    await client.readResponse();
    await inTheEnd(scene, client);
    expect(scene.records().map(shortly)).toEqual([
      'exchange default 3 forwarded 200 no_match',
      'exchange box 1 forwarded 200 no_match',
      'exchange default 3 refused 407 proxy_auth_required',
      'admin proxy_config.apply box 2 done 200 -',
      'exchange box 2 forwarded 200 no_match',
    ]);
  });

  it('I11 accountable: a connection belongs to the listener’s sandbox until a token names another sandbox', async () => {
    await using scene = await createRecordScene({ tls: 'clear', rules: [] });
    await using client = await scene.client();
    for (const shown of ['Proxy-Authorization: Bearer nobody', SHOWN, SHOWN]) {
      await client.send(head(`GET http://${scene.at()}/`, scene.at(), [shown]));
      await client.readResponse();
    }
    await client.send(head(`GET http://${scene.at()}/`, scene.at()));
    await client.readResponse();
    await inTheEnd(scene, client);
    expect(scene.records().map(shortly)).toEqual([
      'exchange default 3 refused 407 proxy_auth_required',
      'exchange box 1 forwarded 200 no_match',
      'exchange box 1 forwarded 200 no_match',
      'exchange box 1 refused 407 proxy_auth_required',
    ]);
  });
});

describe('I11 accountable: the revision', () => {
  it.each([
    [
      'a CONNECT whose host is not found',
      new Error('no such name'),
      'exchange default 1 refused 502 dns_failed',
    ],
    [
      'a CONNECT to a forbidden address',
      ['169.254.169.254'],
      'exchange default 1 refused 403 address_denied',
    ],
  ])('I11 accountable: the record of %s names the revision at its start', async (_, response, record) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
    await using scene = await createScene({ rules: [], resolve: { 'late.test': promise } });
    await using client = await scene.client();
    await client.send(head('CONNECT late.test:80', 'late.test'));
    await expect.poll(() => scene.proxy.lookups).toEqual(['late.test']);
    scene.proxy.apply({ rules: [] });
    if (response instanceof Error) reject(response);
    else resolve(response);
    await client.readResponse();
    expect(await inTheEnd(scene, client)).toEqual([record]);
  });

  it('I11 accountable: the record of an aborted tunnel names the revision that intercepted it', async () => {
    await using scene = await createScene();
    await using client = await scene.client();
    await client.openTunnel(scene.at());
    scene.proxy.apply({ rules: [] });
    client.end();
    await scene.proxy.record(0);
    expect(await inTheEnd(scene)).toEqual(['exchange default 1 failed - client_gone']);
  });

  it('I11 accountable: a change of the operator’s files is recorded as a write', async () => {
    await using scene = await createScene();
    scene.proxy.apply({ rules: [] });
    scene.proxy.apply({ rules: 1 });
    scene.proxy.sidecar.reapply(() => undefined);
    expect(scene.proxy.lines.filter(({ msg }) => msg === 'admin').map(shortly)).toEqual([
      'admin proxy_config.apply default 1 done - -',
      'admin proxy_config.apply default 2 done - -',
      'admin proxy_config.apply default - refused - invalid',
      'admin proxy_config.apply default 3 done - -',
    ]);
  });
});

type Ask = {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Replaces Host and token. */
  readonly fields?: readonly string[];
  /** Added to them. */
  readonly more?: readonly string[];
};

/** Sends a request to the admin API; the test owns the connection. */
async function send({ proxy }: Scene, { method, path, ...rest }: Ask): Promise<WireClient> {
  const client = await WireClient.connect(Number(new URL(proxy.adminUrl).port));
  const own = ['Host: localhost', `Authorization: Bearer ${proxy.adminToken}`];
  await client.send(request(method, path, { fields: own, ...rest }));
  return client;
}

async function statusOf(scene: Scene, ask: Ask): Promise<number> {
  await using client = await send(scene, ask);
  return (await client.readResponse()).head.status;
}

const CONFIG = '/v1/proxy_config';
const BOX = '/v1/sandboxes/box';
const LOCAL = 'Host: localhost';
const WRONG = `Authorization: Bearer ${TOKEN}`;
const apply = { method: 'PUT', path: CONFIG, body: { rules: [] } };

const writes: readonly (readonly [Ask, string])[] = [
  [apply, 'proxy_config.apply default 4 done 200 -'],
  [{ ...apply, method: 'POST' }, 'proxy_config.apply default 4 done 200 -'],
  [{ ...apply, path: `${BOX}/proxy_config` }, 'proxy_config.apply box 2 done 200 -'],
  [{ ...apply, method: 'POST', path: `${BOX}/proxy_config` }, 'proxy_config.apply box 2 done 200 -'],
  ...['PUT', 'POST'].flatMap((method): readonly (readonly [Ask, string])[] => [
    [
      { method, path: '/v1/workspace_secrets', body: { A: 'b' } },
      'workspace_secrets.change default - done 200 -',
    ],
    [
      { method, path: `${BOX}/workspace_secrets`, body: { A: 'b' } },
      'workspace_secrets.change box - done 200 -',
    ],
  ]),
  [{ method: 'POST', path: '/v1/sandboxes', body: { id: 'two' } }, 'sandbox.create two 0 done 201 -'],
  [
    { method: 'PATCH', path: BOX, body: { limits: { max_connections: 9 } } },
    'sandbox.change box 1 done 200 -',
  ],
  [{ method: 'DELETE', path: BOX }, 'sandbox.remove box - done 204 -'],
];

const refusedWrites: readonly (readonly [why: string, ask: Ask, record: string])[] = [
  ['without a Host', { ...apply, fields: [] }, 'unknown - - refused 400 bad_host'],
  ['without a token', { ...apply, fields: [LOCAL] }, 'proxy_config.apply default - refused 401 no_token'],
  [
    'with a wrong token',
    { ...apply, fields: [LOCAL, WRONG] },
    'proxy_config.apply default - refused 401 wrong_token',
  ],
  ['from a proxy', { ...apply, more: ['Via: 1.1 x'] }, 'proxy_config.apply default - refused 403 proxied'],
  ['to no route', { ...apply, path: '/v1/other' }, 'unknown - - refused 404 no_route'],
  [
    'to no sandbox',
    { ...apply, path: '/v1/sandboxes/none/proxy_config' },
    'proxy_config.apply none - refused 404 not_found',
  ],
  ['by another method', { method: 'DELETE', path: CONFIG }, 'unknown - - refused 405 method'],
  [
    'that creates an existing sandbox',
    { method: 'POST', path: '/v1/sandboxes', body: { id: 'box' } },
    'sandbox.create - - refused 409 exists',
  ],
  [
    'that removes a protected sandbox',
    { method: 'DELETE', path: '/v1/sandboxes/default' },
    'sandbox.remove default - refused 409 protected',
  ],
  [
    'to another revision',
    { ...apply, more: ['If-Match: "x"'] },
    'proxy_config.apply default - refused 412 stale',
  ],
  [
    'that is too large',
    { ...apply, body: 'x'.repeat(1_048_577) },
    'proxy_config.apply default - refused 413 too_large',
  ],
  [
    'of another type',
    { ...apply, more: ['Content-Type: text/plain'] },
    'proxy_config.apply default - refused 415 content_type',
  ],
  [
    'under a rebound name',
    { ...apply, fields: ['Host: attacker.test'] },
    'proxy_config.apply default - refused 421 foreign_host',
  ],
  ['with invalid JSON', { ...apply, body: '{' }, 'proxy_config.apply default - refused 422 invalid'],
  [
    'of an invalid document',
    { ...apply, body: { rules: 1 } },
    'proxy_config.apply default - refused 422 invalid',
  ],
  ['with a query', { ...apply, path: `${CONFIG}?a=1` }, 'proxy_config.apply default - refused 422 invalid'],
];

describe('I11 accountable: writes to the admin API', () => {
  it.each(writes)('I11 accountable: a write leaves one record: $method $path', async (ask, record) => {
    await using scene = await createRecordScene();
    expect(await statusOf(scene, ask).catch(() => 204)).toBeLessThan(300);
    await scene.proxy.sidecar.close();
    expect(scene.records().map(shortly)).toEqual([`admin ${record}`]);
  });

  it.each(refusedWrites)('I11 accountable: a write %s leaves one record', async (_, ask, record) => {
    await using scene = await createRecordScene();
    expect(await statusOf(scene, ask)).toBe(Number(/refused (\d+)/.exec(record)?.[1]));
    await scene.proxy.sidecar.close();
    expect(scene.records().map(shortly)).toEqual([`admin ${record}`]);
  });

  it.each(writes)(
    'I11 accountable: a write that cannot be stored leaves one record: $method $path',
    async (ask) => {
      await using scene = await createRecordScene();
      const before = [scene.proxy.sidecar.revision, await scene.proxy.admin('GET', '/v1/sandboxes')];
      scene.store.failWith(Object.assign(new Error('no space'), { code: 'ENOSPC' }));
      expect(await statusOf(scene, ask)).toBe(500);
      expect([scene.proxy.sidecar.revision, await scene.proxy.admin('GET', '/v1/sandboxes')]).toEqual(before);
      await scene.proxy.sidecar.close();
      expect(scene.records().map(shortly)).toEqual([
        expect.stringMatching(/^admin \S+ (default|box|-) - failed 500 storage_failed$/),
      ]);
    },
  );

  it('I11 accountable: each wrong token leaves one record, on reads and writes, also above the rate limit', async () => {
    await using scene = await createRecordScene();
    const statuses = [];
    for (const method of ['PUT', 'GET', 'PUT', 'GET', 'PUT', 'GET', 'PUT'])
      statuses.push(await statusOf(scene, { method, path: CONFIG, fields: [LOCAL, WRONG], body: {} }));
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect(scene.records().map(({ status }) => status)).toEqual(statuses);
  });

  it('I11 accountable: reads leave no record', async () => {
    await using scene = await createRecordScene();
    for (const path of ['/', '/healthz', CONFIG, BOX, '/v1/sandboxes', '/v1/nothing'])
      await scene.proxy.admin('GET', path);
    expect(scene.records()).toEqual([]);
  });

  it('I11 accountable: each write above the limit of concurrent writes leaves one record', async () => {
    await using scene = await createRecordScene();
    const held = scene.store.hold();
    const clients = [await send(scene, apply)];
    await held.begun;
    for (let i = 1; i < 8; i += 1) clients.push(await send(scene, apply));
    // When it is refused, the previous ones have arrived.
    await expect.poll(() => statusOf(scene, apply)).toBe(429);
    const refused = scene.records().length;
    held.release();
    for (const client of clients) expect((await client.readResponse()).head.status).toBe(200);
    const revisions = [4, 5, 6, 7, 8, 9, 10, 11].map(
      (at) => `admin proxy_config.apply default ${at} done 200 -`,
    );
    expect(scene.records().slice(refused).map(shortly)).toEqual(revisions);
    for (const client of clients) await client[Symbol.asyncDispose]();
  });

  it('I11 accountable: each write above the rate limit leaves one record', async () => {
    await using scene = await createAdminScene({ limits: { writesPerSecond: 1 } });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await scene.ask('PUT', CONFIG, { body: {} })).head.status);
    expect(statuses.slice(0, 1)).toEqual([200]);
    expect(scene.records.map(({ status }) => status)).toEqual(statuses);
  });

  it('I11 accountable: a write that arrives too slowly leaves one record', async () => {
    await using scene = await createAdminScene({ limits: { requestMs: 50 } });
    await using client = await scene.connect();
    await client.send(
      request('PUT', CONFIG, { more: ['Content-Type: application/json', 'Content-Length: 9'] }),
    );
    expect((await client.readResponse()).head.status).toBe(408);
    await scene.server.close(0);
    expect(scene.records).toMatchObject([{ status: 408, outcome: 'failed', reason: 'late' }]);
  });

  it('I11 accountable: a write whose caller disconnects before its end leaves one record', async () => {
    await using scene = await createRecordScene();
    const client = await send(scene, {
      ...apply,
      body: undefined,
      more: ['Content-Type: application/json', 'Content-Length: 9'],
    });
    client.reset();
    await expect.poll(() => scene.records().map(shortly)).toHaveLength(1);
    await scene.proxy.sidecar.close();
    expect(scene.records().map(shortly)).toEqual([
      'admin proxy_config.apply default - failed 499 client_gone',
    ]);
  });

  it('I11 accountable: a write whose caller disconnects while it is stored leaves the record of its result', async () => {
    await using scene = await createRecordScene();
    const held = scene.store.hold();
    const client = await send(scene, apply);
    await held.begun;
    client.reset();
    await client.finished;
    held.release();
    await expect.poll(() => scene.records()).toHaveLength(1);
    expect(scene.proxy.sidecar.revision).toBe(4);
    await scene.proxy.sidecar.close();
    expect(scene.records().map(shortly)).toEqual(['admin proxy_config.apply default 4 done 200 -']);
  });

  it('I11 accountable: a write that has arrived in part when the process stops leaves one record', async () => {
    await using scene = await createRecordScene();
    const more = ['Content-Type: application/json', 'Content-Length: 9', 'Expect: 100-continue'];
    await using client = await send(scene, { ...apply, body: undefined, more });
    expect((await client.readHead()).status).toBe(100);
    await scene.proxy.sidecar.close();
    expect(scene.records().map(shortly)).toEqual([
      'admin proxy_config.apply default - failed 499 client_gone',
    ]);
  });

  it('I11 accountable: a queued write is refused when the process stops, and leaves one record', async () => {
    await using scene = await createRecordScene();
    const held = scene.store.hold();
    await using first = await send(scene, apply);
    await held.begun;
    const more = ['Content-Type: application/json', 'Content-Length: 2', 'Expect: 100-continue'];
    await using second = await send(scene, {
      ...apply,
      path: `${BOX}/proxy_config`,
      body: undefined,
      more,
    });
    expect((await second.readHead()).status).toBe(100);
    await second.send('{}');
    const closed = scene.proxy.sidecar.close();
    held.release();
    expect((await first.readResponse()).head.status).toBe(200);
    expect((await second.readResponse()).head.status).toBe(503);
    await closed;
    expect(scene.records().map(shortly)).toEqual([
      'admin proxy_config.apply default 4 done 200 -',
      'admin proxy_config.apply box - refused 503 busy',
    ]);
  });

  it('I11 accountable: a sandbox above the limit leaves one record', async () => {
    await using scene = await createRecordScene();
    const { contents } = scene.store;
    const box = contents.get('box') ?? '';
    for (let i = 1; i < 1_000; i += 1) contents.set(`s${i}`, box.replace('"id":"box"', `"id":"s${i}"`));
    await scene.proxy.sidecar.restore(() => undefined);
    expect(await statusOf(scene, { method: 'POST', path: '/v1/sandboxes', body: {} })).toBe(507);
    expect(scene.records().map(shortly).at(-1)).toBe('admin sandbox.create - - refused 507 full');
    expect(contents.size).toBe(1_000);
  });

  it('I11 accountable: a write that is being stored when the process stops leaves its record', async () => {
    await using scene = await createRecordScene();
    const held = scene.store.hold();
    await using client = await send(scene, apply);
    await held.begun;
    const closed = scene.proxy.sidecar.close();
    await client.finished;
    held.release();
    await closed;
    expect(scene.records().map(shortly)).toEqual(['admin proxy_config.apply default 4 done 200 -']);
  });
});

describe('I11 accountable: while records cannot be written', () => {
  it('I11 accountable: no request, tunnel or write begins; afterwards each does', async () => {
    await using scene = await createRecordScene();
    const open = [await scene.tunnel(), await scene.tunnel()];
    const inside = async (): Promise<number> => {
      await using client = open.shift() as WireClient;
      await client.send(head('GET /', scene.at()));
      return (await client.readResponse()).head.status;
    };
    const outside = async (line: string): Promise<number> => {
      await using client = await scene.client();
      await client.send(head(line, scene.at()));
      return (await client.readHead()).status;
    };
    const all = async (): Promise<readonly number[]> => {
      const statuses = [await inside(), await outside(`CONNECT ${scene.at()}`)];
      statuses.push(
        await outside(`CONNECT ${scene.at('blind.test')}`),
        await outside(`GET http://${scene.at('blind.test')}/`),
      );
      for (const [ask] of writes.slice(0, -1)) statuses.push(await statusOf(scene, ask));
      return statuses;
    };
    scene.proxy.blockSink(true);
    const refused = await all();
    expect(refused).toEqual(refused.map(() => 503));
    expect([scene.origin.connections, scene.proxy.sidecar.revision]).toEqual([0, 3]);
    expect([...scene.store.contents.keys()]).toEqual(['box']);
    expect(scene.records().map(({ status }) => status)).toEqual(refused);
    scene.proxy.blockSink(false);
    expect(Math.max(...(await all()).slice(4))).toBe(201);
    expect(scene.origin.connections).toBeGreaterThan(0);
  });

  it.each(['its body arrives', 'the previous writes are stored'])(
    'I11 accountable: a write that waited until %s has no effect',
    async (what) => {
      await using scene = await createRecordScene();
      const held = what === 'its body arrives' ? undefined : scene.store.hold();
      const before = held && (await send(scene, apply));
      await held?.begun;
      const more = ['Content-Type: application/json', 'Content-Length: 2', 'Expect: 100-continue'];
      await using client = await send(scene, {
        ...apply,
        path: `${BOX}/proxy_config`,
        body: undefined,
        more,
      });
      expect((await client.readHead()).status).toBe(100);
      if (held) await client.send('{}');
      scene.proxy.blockSink(true);
      if (held) held.release();
      else await client.send('{}');
      expect((await client.readResponse()).head.status).toBe(503);
      await before?.[Symbol.asyncDispose]();
      const shown = await scene.proxy.admin('GET', `${BOX}/proxy_config`);
      expect(shown.body['revision']).toBe(REVISION['box']);
      expect(scene.records().map(shortly).at(-1)).toBe(
        'admin proxy_config.apply box - refused 503 records_blocked',
      );
    },
  );
});

// One record for every exchange, with these keys and no others, and never a value of a header: an operator may store
// records for years.
import { describe, expect, it } from 'vitest';
import {
  type ExchangeRecord,
  RecordMemo,
  createRecorder,
  recordMembers,
  recordedPath,
} from '../../src/proxy/record.ts';
import { recordBatch } from '../../src/platform/sandbox-records/contract.ts';
import type { LogRecord } from '../support/spawned-process.ts';
import { type DataPath, type DataPathOptions, createDataPath, errorOf, head, secret } from './data-path.ts';

const always = [
  'level',
  'time',
  'msg',
  'sandbox',
  'revision',
  'client',
  'scheme',
  'outcome',
  'bytes_up',
  'bytes_down',
  'duration_ms',
];
const request = [...always, 'method', 'authority', 'path'];
const empty = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const canary = 'agent-canary-value';

/** Sends a request that carries canaries where values are: query, fields, body. */
async function send(path: DataPath, line: string, ...fields: string[]): Promise<void> {
  const client = await path.tunnel();
  await client.send(
    head(line, `Host: ${path.authority}`, `X-Canary: ${canary}`, `Authorization: ${canary}`, ...fields),
  );
  await client.finished;
  client.end();
}

type Row = {
  readonly when: string;
  readonly options?: DataPathOptions;
  readonly act: (path: DataPath) => Promise<void>;
  readonly keys: readonly string[];
  readonly holds: LogRecord;
};

const close = 'Connection: close';
const rows: readonly Row[] = [
  {
    when: 'an injected request',
    act: (path) => send(path, `GET /v1/x?q=${canary} HTTP/1.1`, close),
    keys: [...request, 'rule', 'injected', 'status', 'upstream_reused'],
    holds: {
      outcome: 'injected',
      method: 'GET',
      path: '/v1/x',
      rule: 'api',
      injected: ['Authorization'],
      status: 200,
      upstream_reused: false,
      scheme: 'https',
    },
  },
  {
    when: 'a request that no path matched',
    options: {
      proxyConfig: {
        rules: [
          {
            match_hosts: ['api.test'],
            match_paths: ['/v1/*'],
            headers: [{ name: 'X-Key', type: 'opaque', value: secret }],
          },
        ],
      },
    },
    act: (path) => send(path, `GET /other?${canary} HTTP/1.1`, close),
    keys: [...request, 'reason', 'status', 'upstream_reused'],
    holds: { outcome: 'forwarded', reason: 'no_path_match', path: '/other' },
  },
  {
    when: 'a response without framing',
    options: { respond: ({ send: response, end }) => response('HTTP/1.1 200 OK\r\n\r\nx').then(end) },
    act: (path) => send(path, 'GET / HTTP/1.1', close),
    keys: [...request, 'rule', 'injected', 'status', 'upstream_reused', 'unframed'],
    holds: { outcome: 'injected', unframed: true },
  },
  {
    when: 'a refusal by the gate',
    options: {
      proxyConfig: {
        rules: [
          {
            match_hosts: ['api.test'],
            match_paths: ['/v1/*'],
            headers: [{ name: 'X-Key', type: 'opaque', value: secret }],
          },
        ],
      },
    },
    act: (path) => send(path, `GET /v1/%2e%2e/${canary.slice(0, 5)}?${canary} HTTP/1.1`, close),
    keys: [...request, 'reason', 'cause', 'status'],
    holds: { outcome: 'refused', reason: 'ambiguous_path', status: 400 },
  },
  {
    when: 'a refusal of the head',
    act: (path) => send(path, `GET /?${canary} HTTP/1.1`, `Host: ${canary}.test`),
    keys: [...always, 'method', 'authority', 'reason', 'cause', 'status'],
    holds: { outcome: 'refused', reason: 'host_invalid', status: 400 },
  },
  {
    when: 'a head that does not parse',
    act: (path) => send(path, `GET /?${canary} HTTP/1.1`, `X ${canary}: x`),
    keys: [...always, 'authority', 'reason', 'cause', 'status'],
    holds: { outcome: 'refused', reason: 'malformed_request', cause: 'space_before_colon' },
  },
  {
    when: 'a host that cannot be resolved',
    options: { names: { 'api.test': new Error(canary) } },
    act: (path) => send(path, 'GET / HTTP/1.1', close),
    keys: [...request, 'rule', 'reason', 'cause', 'status'],
    holds: { outcome: 'failed', reason: 'dns_failed', status: 502 },
  },
  {
    when: 'a host that closes',
    options: { respond: ({ end }) => end() },
    act: (path) => send(path, 'GET / HTTP/1.1', close),
    keys: [...request, 'rule', 'injected', 'reason', 'cause', 'status', 'upstream_reused'],
    holds: { outcome: 'failed', reason: 'upstream_closed', status: 502 },
  },
  {
    when: 'a response that is cut',
    options: {
      respond: ({ send: response, end }) =>
        response('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx').then(end),
    },
    act: (path) => send(path, 'GET / HTTP/1.1', close),
    keys: [...request, 'rule', 'injected', 'reason', 'cause', 'status', 'upstream_reused'],
    holds: { outcome: 'failed', reason: 'upstream_truncated', status: 200 },
  },
  {
    when: 'a client that leaves',
    options: { respond: () => new Promise(() => {}) },
    async act(path) {
      const client = await path.tunnel();
      await client.send(head(`GET / HTTP/1.1`, `Host: ${path.authority}`));
      await path.origin.request(0);
      client.reset();
    },
    keys: [...request, 'rule', 'injected', 'reason', 'upstream_reused'],
    holds: { outcome: 'failed', reason: 'client_gone' },
  },
  {
    when: 'a callback that fails',
    options: {
      proxyConfig: {
        callbacks: [{ match_hosts: ['api.test'], url: 'http://127.0.0.1:9/', ttl_seconds: 60 }],
      },
    },
    act: (path) => send(path, 'GET / HTTP/1.1', close),
    keys: [...request, 'callback', 'reason', 'cause', 'status'],
    holds: { level: 'warn', outcome: 'failed', reason: 'callback_failed', status: 502 },
  },
  {
    when: 'a handshake that is given up',
    async act(path) {
      const client = await path.plain();
      await client.openTunnel(path.authority);
      client.end();
    },
    keys: [...always, 'method', 'authority', 'reason'],
    holds: { method: 'CONNECT', outcome: 'failed', reason: 'client_gone' },
  },
  {
    when: 'a blind tunnel',
    async act(path) {
      const client = await path.plain();
      await client.openTunnel(`blind.test:${path.origin.port}`);
      client.reset();
    },
    keys: [...always, 'method', 'authority', 'reason', 'status'],
    holds: { method: 'CONNECT', scheme: 'tunnel', outcome: 'tunnelled', status: 200 },
  },
  {
    when: 'a refused CONNECT',
    async act(path) {
      const client = await path.plain();
      await client.send(head('CONNECT nothing.test HTTP/1.1'));
      await client.finished;
      client.end();
    },
    keys: [...always, 'method', 'reason', 'cause', 'status'],
    holds: { method: 'CONNECT', outcome: 'refused', reason: 'authority_invalid' },
  },
];

describe('a record', () => {
  it.each(rows)(
    'of $when is written once, with just these keys, and without a value',
    async ({ options, act, keys, holds }) => {
      await using path = await createDataPath(options);
      await act(path);
      const record = await path.proxy.record(0);
      expect(Object.keys(record).toSorted()).toEqual(keys.toSorted());
      expect(record).toMatchObject({ sandbox: 'default', client: '127.0.0.1', level: 'info', ...holds });
      await path.proxy.sidecar.close();
      expect(path.proxy.records()).toHaveLength(1);
      const text = JSON.stringify(path.proxy.lines);
      expect(text).not.toContain(canary);
      expect(text).not.toContain(secret);
    },
  );

  it('of a callback names it and says whether its result was cached', async () => {
    await using endpoint = await createDataPath({
      isClear: true,
      respond: ({ send: response }) =>
        response(
          'HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n{"headers":{"X-Token":"callback-secret-one"}}',
        ),
    });
    await using path = await createDataPath({
      proxyConfig: {
        callbacks: [
          { match_hosts: ['api.test'], url: `http://127.0.0.1:${endpoint.origin.port}/`, ttl_seconds: 60 },
        ],
      },
    });
    await send(path, 'GET /1 HTTP/1.1', close);
    await send(path, 'GET /2 HTTP/1.1', close);
    const [first, second] = [await path.proxy.record(0), await path.proxy.record(1)];
    expect(first).toMatchObject({
      callback: 'callbacks[0]',
      callback_cached: false,
      injected: ['X-Token'],
      outcome: 'injected',
    });
    expect(second).toMatchObject({ callback: 'callbacks[0]', callback_cached: true });
    expect(JSON.stringify(path.proxy.lines)).not.toContain('callback-secret-one');
  });

  it('counts the bytes that were sent and received', async () => {
    await using path = await createDataPath({
      respond: ({ readBody, send: response }) => readBody().then(() => response(`${empty}`)),
    });
    const client = await path.tunnel();
    await client.send(`${head('POST / HTTP/1.1', `Host: ${path.authority}`, 'Content-Length: 5')}hello`);
    await client.readHead();
    const record = await path.proxy.record(0);
    expect(record).toMatchObject({ bytes_up: path.origin.transcripts[0]?.length, bytes_down: empty.length });
  });

  it('keeps its path short, without its query', () => {
    expect(recordedPath('/a/b?c=d?e')).toBe('/a/b');
    expect(recordedPath('?x')).toBe('');
    expect(recordedPath(`/${'a'.repeat(600)}?x`)).toBe(`/${'a'.repeat(511)}…`);
    expect(recordedPath('*')).toBe('*');
  });

  it('cannot break out of its line', async () => {
    await using path = await createDataPath();
    await send(path, 'GET /\x80\xff"\\{}\u00ad HTTP/1.1', close).catch(() => undefined);
    const record = await path.proxy.record(0);
    expect(typeof record['outcome']).toBe('string');
  });
});

describe('records that cannot be written', () => {
  it('stop requests, tunnels and upgrades, and nothing reaches an upstream, until they can be written again', async () => {
    await using path = await createDataPath();
    const open = await path.tunnel();
    path.proxy.blockSink(true);
    await open.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    const inside = (await open.readResponse()).head;
    expect([inside.status, errorOf(inside)]).toEqual([503, 'record_sink_blocked']);
    const client = await path.plain();
    const response = await client.openTunnel(path.authority);
    expect([response.status, errorOf(response)]).toEqual([503, 'record_sink_blocked']);
    expect(path.origin.connections).toBe(0);
    path.proxy.blockSink(false);
    const again = await path.tunnel();
    await again.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    expect((await again.readResponse()).head.status).toBe(200);
  });

  it('are dropped and counted if the operator wants that', () => {
    const written: unknown[] = [];
    const write = (record: unknown): void => void written.push(record);
    const sink = { isBlocked: true };
    const recorder = createRecorder({ write, sink, whenBlocked: 'drop' });
    const record = { sandbox: 's', revision: 1, bytes_up: 0, bytes_down: 0 };
    expect(recorder.isBlocked).toBe(false);
    recorder.emit(record, 0);
    sink.isBlocked = false;
    recorder.emit(record, 0);
    expect([written.length, recorder.counts]).toEqual([1, { emitted: 1, dropped: 1 }]);
  });
});

describe('what is recorded', () => {
  it('does not depend on the level of the log', async () => {
    await using path = await createDataPath({ config: { log: { level: 'error' } } });
    await send(path, 'GET /v1/x HTTP/1.1', close);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', status: 200 });
  });

  it.each([
    ['records are switched off', { log: { records: false } }],
    ['the log is silent', { log: { level: 'silent' } }],
  ])('is nothing where %s', async (_, config) => {
    await using path = await createDataPath({ config });
    await send(path, 'GET /v1/x HTTP/1.1', close);
    expect(path.proxy.records()).toEqual([]);
  });

  it('includes an intercepted tunnel that was opened and never used', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    client.end();
    expect(await path.proxy.record(0)).toMatchObject({
      method: 'CONNECT',
      authority: path.authority,
      outcome: 'failed',
      reason: 'client_gone',
    });
  });

  it('includes one whose client left in the middle of a head', async () => {
    await using path = await createDataPath();
    const client = await path.tunnel();
    await client.send('GET /');
    client.reset();
    expect(await path.proxy.record(0)).toMatchObject({ method: 'CONNECT', reason: 'client_gone' });
  });
});

describe('a record as text', () => {
  const hostile = '"\\\n\u2028\ud800\u0000é';
  const injected = Object.freeze([hostile, 'Authorization']);
  const full: ExchangeRecord = {
    sandbox: hostile,
    revision: 3,
    client: hostile,
    method: hostile,
    scheme: 'https',
    protocol: 'h2',
    authority: hostile,
    path: hostile,
    rule: hostile,
    callback: hostile,
    callback_cached: false,
    injected,
    outcome: 'injected',
    reason: hostile,
    cause: hostile,
    status: 200,
    upstream_reused: false,
    unframed: true,
    scrubbed: 2,
    bytes_up: 0,
    bytes_down: 12,
    duration_ms: 0.125,
  };
  const keys = Object.keys(full) as (keyof ExchangeRecord)[];
  const required: readonly string[] = ['sandbox', 'revision', 'bytes_up', 'bytes_down'];
  const optional = keys.filter((key) => !required.includes(key));

  it('is its JSON, in the order of the schema of the platform', () => {
    expect(`{${recordMembers(full)}}`).toBe(JSON.stringify(full));
    const { shape } = recordBatch.shape.records.element;
    expect(Object.keys(shape)).toEqual(['number', 'time', ...keys]);
  });

  it.each(optional)('omits %s if that is undefined', (key) => {
    const without = { ...full, [key]: undefined };
    expect(`{${recordMembers(without)}}`).toBe(JSON.stringify(without));
    const only = Object.fromEntries(
      Object.entries(full).filter(([name]) => name === key || required.includes(name)),
    ) as ExchangeRecord;
    expect(`{${recordMembers(only)}}`).toBe(JSON.stringify(only));
  });

  it.each(keys)('that follows another on its connection has its own %s', (key) => {
    const memo = new RecordMemo();
    expect(recordMembers({ ...full, memo })).toBe(recordMembers(full));
    const value = full[key];
    const changed =
      typeof value === 'number'
        ? value + 1
        : typeof value === 'boolean'
          ? !value
          : key === 'injected'
            ? ['X']
            : 'other';
    const next = { ...full, [key]: changed } as ExchangeRecord;
    expect(`{${recordMembers({ ...next, memo })}}`).toBe(JSON.stringify(next));
    expect(`{${recordMembers({ ...full, [key]: full[key], memo })}}`).toBe(JSON.stringify(full));
  });
});

// Metrics, records and what clients have counted agree to the last request: over HTTP/1.1 and HTTP/2, while the rules change, and
// while somebody reads the metrics ten times a second.
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { type DataPath, apiRule, createDataPath, head } from '../../proxy/data-path.ts';
import { createCallbackEndpoint } from '../../support/callback-endpoint.ts';
import { createH2Origin } from '../../support/h2-origin.ts';
import { openH2Tunnel } from '../../support/h2-tunnel.ts';
import { response } from '../../support/recording-origin.ts';
import { origins } from '../../proxy/data-path.ts';
import { WireClient } from '../../support/wire-client.ts';
import { type ReadMetrics, readMetrics } from './metric-text.ts';

const CLIENTS = 2;
const READ_EVERY_MS = 100;
const CHANGED_AFTER = 25;
const SUM_OF: Readonly<Record<string, string>> = {
  rule: 'sallyport_rule_requests_total',
  callback: 'sallyport_callback_requests_total',
};

async function read(url: string): Promise<ReadMetrics> {
  await using client = await WireClient.connect(Number(new URL(url).port));
  await client.send(head('GET /metrics HTTP/1.1', 'Host: localhost'));
  return readMetrics((await client.readResponse()).text);
}

/** Reads ten times a second; every count that was read must be at least that of the reading before. */
function startReader(url: string) {
  const before = new Map<string, number>();
  const shrunk: string[] = [];
  let running: Promise<void> | undefined;
  let readings = 0;
  const timer = setInterval(() => {
    // One after the other: an older reading must not come after a newer one.
    running ??= read(url).then(({ series }) => {
      readings += 1;
      for (const { name, labels, value } of series.filter((one) => one.name.endsWith('_total'))) {
        const id = `${name} ${JSON.stringify(labels)}`;
        if (value < (before.get(id) ?? 0)) shrunk.push(id);
        before.set(id, value);
      }
      running = undefined;
    });
  }, READ_EVERY_MS);
  return {
    async end(): Promise<{ readonly readings: number; readonly shrunk: readonly string[] }> {
      clearInterval(timer);
      await running;
      return { readings, shrunk };
    },
  };
}

/** Rules whose names go and come back; one request of four is for a host that nothing names. */
const documentOf = (version: number, callbackUrl: string): object => ({
  rules: [
    version % 2 === 0
      ? { ...apiRule, name: 'comes-and-goes' }
      : { ...apiRule, name: 'other-name', match_hosts: ['api.test'] },
    { ...apiRule, name: 'h2', match_hosts: ['h2.test'] },
  ],
  callbacks: [{ name: 'team', match_hosts: ['other.test'], url: callbackUrl, ttl_seconds: 60 }],
});

async function sendOverH1(path: DataPath, requests: number, onEnded: () => void): Promise<void> {
  const client = await path.tunnel();
  for (let i = 0; i < requests; i += 1) {
    const target = i % 10 === 9 ? '/a/../b' : `/v1/${i}?q=1`;
    await client.send(head(`GET ${target} HTTP/1.1`, `Host: ${path.authority}`));
    await client.readResponse();
    onEnded();
  }
}

async function checkAgreement(requests: number): Promise<void> {
  await using endpoint = await createCallbackEndpoint({
    headers: { Authorization: 'Bearer of-the-callback' },
  });
  await using h2 = await createH2Origin({ tls: { authority: origins, names: ['h2.test'] } });
  await using path = await createDataPath({
    config: { metrics: { listen: '127.0.0.1:0' } },
    proxyConfig: documentOf(0, endpoint.url),
    respond: ({ send }) => send(response(200, [], 'twelve bytes')),
  });
  const { proxy } = path;
  const url = await proxy.sidecar.openMetrics('test');
  const reader = startReader(url);
  let ended = 0;
  /** Every few requests there are other rules. */
  const onEnded = (): void => {
    ended += 1;
    if (ended % CHANGED_AFTER > 0) return;
    expect(proxy.apply(documentOf(ended / CHANGED_AFTER, endpoint.url))).toMatchObject({ ok: true });
  };
  const session = await openH2Tunnel({
    proxyPort: proxy.port,
    authority: `h2.test:${h2.port}`,
    ca: proxy.caPem,
  });
  const overH2 = async (): Promise<void> => {
    for (let i = 0; i < requests; i += 1) {
      await once(session.request({ ':path': `/${i}` }).resume(), 'end');
      onEnded();
    }
  };
  const overPlain = async (): Promise<void> => {
    const client = await path.plain();
    for (let i = 0; i < requests; i += 1) {
      // Refused, for credentials are not sent in plaintext.
      await client.send(
        head(`GET http://other.test:${path.origin.port}/ HTTP/1.1`, `Host: other.test:${path.origin.port}`),
      );
      await client.readResponse();
      onEnded();
    }
  };
  const callback = async (): Promise<void> => {
    const client = await WireClient.connectThrough(proxy.port, `other.test:${path.origin.port}`, {
      ca: proxy.caPem,
      name: 'other.test',
    });
    for (let i = 0; i < requests; i += 1) {
      await client.send(head('GET / HTTP/1.1', `Host: other.test:${path.origin.port}`));
      await client.readResponse();
      onEnded();
    }
    await client[Symbol.asyncDispose]();
  };
  const overH1 = Array.from({ length: CLIENTS }, () => sendOverH1(path, requests, onEnded));
  await Promise.all([...overH1, overH2(), overPlain(), callback()]);
  session.close();
  const sent = (CLIENTS + 3) * requests;
  await proxy.record(sent - 1);
  const metrics = await read(url);
  const { readings, shrunk } = await reader.end();
  const records = proxy.records();
  expect(shrunk).toEqual([]);
  expect(readings).toBeGreaterThan(0);
  expect(records).toHaveLength(sent);
  expect(metrics.sum('sallyport_requests_total')).toBe(sent);
  expect(metrics.sum('sallyport_records_total')).toBe(sent);
  expect(metrics.sum('sallyport_requests_total', { protocol: 'h2' })).toBe(requests);
  // Each record is one of each count that is about it.
  const count = (is: (record: (typeof records)[number]) => boolean): number => records.filter(is).length;
  for (const outcome of new Set(records.map((one) => String(one['outcome'])))) {
    expect([outcome, metrics.sum('sallyport_requests_total', { outcome })]).toEqual([
      outcome,
      count((one) => one['outcome'] === outcome),
    ]);
    for (const [label, name] of Object.entries(SUM_OF))
      for (const value of new Set(
        records.flatMap((one) => (one[label] === undefined ? [] : [String(one[label])])),
      ))
        expect([outcome, value, metrics.sum(name, { [label]: value, outcome })]).toEqual([
          ...[outcome, value],
          count((one) => one['outcome'] === outcome && one[label] === value),
        ]);
  }
  expect(metrics.sum('sallyport_rule_requests_total', { rule: 'comes-and-goes' })).toBeGreaterThan(0);
  expect(metrics.sum('sallyport_rule_requests_total', { rule: 'other-name' })).toBeGreaterThan(0);
  expect(metrics.sum('sallyport_injections_total')).toBe(count((one) => one['injected'] !== undefined));
  expect(metrics.sum('sallyport_refusals_total') + metrics.sum('sallyport_failures_total')).toBe(
    metrics.sum('sallyport_requests_total', { outcome: 'refused' }) +
      metrics.sum('sallyport_requests_total', { outcome: 'failed' }),
  );
  expect(metrics.sum('sallyport_failures_total', { reason: 'other' })).toBe(0);
  for (const [direction, field] of [
    ['up', 'bytes_up'],
    ['down', 'bytes_down'],
  ] as const)
    expect(metrics.sum('sallyport_transferred_bytes_total', { direction })).toBe(
      records.reduce((sum, one) => sum + Number(one[field]), 0),
    );
  for (const [connection, isReused] of [
    ['reused', true],
    ['new', false],
  ] as const)
    expect(metrics.sum('sallyport_upstream_requests_total', { connection })).toBe(
      count((one) => one['upstream_reused'] === isReused),
    );
  expect(metrics.sum('sallyport_callback_calls_total')).toBe(endpoint.calls.length);
  expect(metrics.sum('sallyport_callback_duration_seconds_count')).toBe(endpoint.calls.length);
}

it('metrics, records and a counted load agree, over both versions of HTTP and while rules change', () =>
  checkAgreement(30));

it('they agree after thousands of requests', { tags: ['long'] }, () => checkAgreement(600));

it('a tunnel is open until it ends, and is counted with its bytes then', async () => {
  await using path = await createDataPath({
    config: { metrics: { listen: '127.0.0.1:0' }, egress: { ports: [80] } },
    proxyConfig: { rules: [] },
    isClear: true,
    respond: ({ send }) => send(response(200, [], 'twelve bytes')),
  });
  const url = await path.proxy.sidecar.openMetrics('test');
  const client = await path.plain();
  expect((await client.openTunnel(`127.0.0.1:${path.origin.port}`)).status).toBe(200);
  await client.send(head('GET / HTTP/1.1', 'Host: a.test'));
  await client.readResponse();
  const open = await read(url);
  expect(open.sum('sallyport_tunnels_open', { kind: 'connect' })).toBe(1);
  expect(open.sum('sallyport_tunnels_total', { kind: 'connect' })).toBe(1);
  expect(open.sum('sallyport_requests_total')).toBe(0);
  expect(open.sum('sallyport_client_connections')).toBe(1);
  client.end();
  const record = await path.proxy.record(0);
  const ended = await read(url);
  expect(ended.sum('sallyport_tunnels_open')).toBe(0);
  expect(ended.sum('sallyport_requests_total', { outcome: 'tunnelled', protocol: 'tunnel' })).toBe(1);
  expect(ended.sum('sallyport_transferred_bytes_total', { direction: 'up' })).toBe(record['bytes_up']);
  expect(ended.sum('sallyport_upstream_connects_total', { result: 'established' })).toBe(1);
});

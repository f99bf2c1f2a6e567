// The listener of the metrics: its format, who may read, and that it is out of reach through the proxy.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sidecarMetrics } from '../../../src/sidecar/metrics/process-metrics.ts';
import { createDataPath, head } from '../../proxy/data-path.ts';
import { createScratch } from '../../support/scratch.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import { createTestSidecar, proxyAuthority } from '../../support/test-sidecar.ts';
import { WireClient, type WireResponse } from '../../support/wire-client.ts';
import { lintMetrics, readMetrics } from './metric-text.ts';

const VERSION = '1.2.3-test';
const CANARY = 'canary-token-of-the-metrics';

async function ask(
  url: string,
  path = '/metrics',
  fields: readonly string[] = ['Host: localhost'],
  method = 'GET',
): Promise<WireResponse> {
  await using client = await WireClient.connect(Number(new URL(url).port));
  await client.send(head(`${method} ${path} HTTP/1.1`, ...fields));
  return await client.readResponse();
}

describe('the metrics', () => {
  it('have names, units and types that Prometheus accepts, and every one that is defined', async () => {
    await using path = await createDataPath({ config: { metrics: { listen: '127.0.0.1:0' } } });
    const url = await path.proxy.sidecar.openMetrics(VERSION);
    const client = await path.tunnel();
    await client.send(head('GET /v1?key=canary-query HTTP/1.1', `Host: ${path.authority}`));
    await client.readResponse();
    const {
      head: { status, headers },
      text,
    } = await ask(url);
    expect(status).toBe(200);
    expect(headers).toContainEqual(['Content-Type', 'text/plain; version=0.0.4; charset=utf-8']);
    const metrics = readMetrics(text);
    expect(lintMetrics(metrics)).toEqual([]);
    expect([...metrics.types.keys()]).toEqual(sidecarMetrics.map(({ name }) => name));
    expect(metrics.sum('sallyport_requests_total', { outcome: 'injected', protocol: 'http1' })).toBe(1);
    expect(metrics.sum('sallyport_build_info', { version: VERSION })).toBe(1);
    expect(metrics.sum('sallyport_ca_end_timestamp_seconds')).toBe(
      Math.floor(proxyAuthority.notAfter.getTime() / 1000),
    );
    expect(metrics.sum('sallyport_leaf_certificates_total')).toBe(1);
    expect(metrics.sum('sallyport_upstream_handshakes_total', { session: 'full' })).toBe(1);
    // Neither a host, nor a path, nor a value, nor an address.
    expect(text).not.toMatch(/canary|api\.test|\/v1|127\.0\.0\.1|sesame/);
    checkWithPromtool(text);
  });

  it('name only labels that are declared', async () => {
    await using path = await createDataPath({ config: { metrics: { listen: '127.0.0.1:0' } } });
    const { series } = readMetrics((await ask(await path.proxy.sidecar.openMetrics(VERSION))).text);
    for (const { name, labels } of series) {
      const family = name.replace(/_(bucket|sum|count)$/, '');
      const definition = sidecarMetrics.find((one) => one.name === name || one.name === family);
      const expected = name.endsWith('_bucket') ? [...(definition?.labels ?? []), 'le'] : definition?.labels;
      expect([name, Object.keys(labels)]).toEqual([name, expected]);
    }
  });
});

/** Where there is one. */
function checkWithPromtool(text: string): void {
  const found = spawnSync('promtool', ['--version']);
  if (found.error !== undefined) return;
  // It prints what it would do better, and ends with an error.
  expect(execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })).toBe('');
}

describe('the listener of the metrics', () => {
  const config = { metrics: { listen: '127.0.0.1:0', hosts: ['sallyport'] } };

  it.each([
    ['a name of loopback', '/metrics', ['Host: localhost:9464'], 200],
    ['an address', '/metrics', ['Host: 10.1.2.3:9464'], 200],
    ['an IPv6 address', '/metrics', ['Host: [fd00::1]:9464'], 200],
    ['a name that the operator lists', '/metrics', ['Host: sallyport:9464'], 200],
    ['a token that is not needed', '/metrics', ['Host: localhost', 'Authorization: Bearer abc'], 200],
    ['parameters, which it ignores', '/metrics?collect=all', ['Host: localhost'], 200],
    ['a foreign name', '/metrics', ['Host: attacker.test'], 421],
    ['a name that begins like an address', '/metrics', ['Host: 10.1.2.3.attacker.test'], 421],
    ['no name', '/metrics', [], 400],
    ['a proxy that sends Via', '/metrics', ['Host: localhost', 'Via: 1.1 p'], 403],
    ['another path', '/', ['Host: localhost'], 404],
    ['a path of the admin API', '/v1/sandboxes', ['Host: localhost'], 404],
  ])('serves under %s', async (_, path, fields, status) => {
    await using proxy = await createTestSidecar({ config });
    const { head: response } = await ask(await proxy.sidecar.openMetrics(VERSION), path, fields);
    expect(response.status).toBe(status);
  });

  it('is only read', async () => {
    await using proxy = await createTestSidecar({ config });
    const url = await proxy.sidecar.openMetrics(VERSION);
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await ask(url, '/metrics', ['Host: localhost', 'Content-Length: 0'], method)).head.status).toBe(
        405,
      );
  });

  it('with a token serves nobody without it, and shows it nowhere', async () => {
    await using scratch = await createScratch();
    const token_file = await scratch.write('token', CANARY);
    await using proxy = await createTestSidecar({
      config: { metrics: { listen: '127.0.0.1:0', token_file } },
    });
    const url = await proxy.sidecar.openMetrics(VERSION);
    const own = (token: string): readonly string[] => [
      'Host: prometheus.test',
      `Authorization: Bearer ${token}`,
    ];
    const none = await ask(url);
    expect([none.head.status, JSON.parse(none.text).code]).toEqual([401, 'no_token']);
    const wrong = await ask(url, '/metrics', ['Host: localhost', `Authorization: Bearer ${CANARY}x`]);
    expect([wrong.head.status, JSON.parse(wrong.text).code]).toEqual([401, 'wrong_token']);
    const right = await ask(url, '/metrics', own(CANARY));
    expect(right.head.status).toBe(200);
    expect(
      [none.text, wrong.text, right.text, ...proxy.lines.map((line) => JSON.stringify(line))].join(),
    ).not.toContain('canary');
  });

  it('needs a token file that can be used: the message names the setting', async () => {
    await using scratch = await createScratch();
    const token_file = await scratch.write('token', 'short');
    await using proxy = await createTestSidecar({
      config: { metrics: { listen: '127.0.0.1:0', token_file } },
    });
    await expect(proxy.sidecar.openMetrics(VERSION)).rejects.toThrow(
      'the token of the metrics must have at least 16 characters',
    );
  });

  it('is not reached through the proxy, whatever the operator allows', async () => {
    await using proxy = await createTestSidecar({
      config: { metrics: { listen: '127.0.0.1:0' }, egress: { allow_private: ['all'], ports: [80] } },
    });
    const { port } = new URL(await proxy.sidecar.openMetrics(VERSION));
    for (const host of ['127.0.0.1', 'metrics.test']) {
      await using client = await WireClient.connect(proxy.port);
      await client.send(head(`GET http://${host}:${port}/metrics HTTP/1.1`, `Host: ${host}:${port}`));
      const { head: response, text } = await client.readResponse();
      expect([host, response.status, text]).toEqual([host, 403, expect.stringContaining('address_denied')]);
    }
  });

  it('is read at most 50 times a second', async () => {
    await using proxy = await createTestSidecar({ config });
    const { port } = new URL(await proxy.sidecar.openMetrics(VERSION));
    await using client = await WireClient.connect(Number(port));
    const statuses: number[] = [];
    for (let i = 0; i < 60; i += 1) {
      await client.send(head('GET /metrics HTTP/1.1', 'Host: localhost'));
      statuses.push((await client.readResponse()).head.status);
    }
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  });

  it('stays within reach of its reader while others hold as many connections as they may', async () => {
    await using scratch = await createScratch();
    const token_file = await scratch.write('token', CANARY);
    await using proxy = await createTestSidecar({
      config: { metrics: { listen: '127.0.0.1:0', token_file } },
    });
    const { port } = new URL(await proxy.sidecar.openMetrics(VERSION));
    await using reader = await WireClient.connect(Number(port));
    const own = head('GET /metrics HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${CANARY}`);
    await reader.send(own);
    expect((await reader.readResponse()).head.status).toBe(200);
    await using held = new AsyncDisposableStack();
    for (let i = 0; i < 40; i += 1) held.use(await WireClient.connect(Number(port)));
    // The connection that has shown the token is still open, and a new one is accepted.
    await reader.send(own);
    expect((await reader.readResponse()).head.status).toBe(200);
    await using another = await WireClient.connect(Number(port));
    await another.send(own);
    expect((await another.readResponse()).head.status).toBe(200);
  });

  it('in use by another program ends the start with a message that names the setting', async () => {
    await using first = await createTestSidecar({ config });
    const { host } = new URL(await first.sidecar.openMetrics(VERSION));
    await using second = await createTestSidecar({ config: { metrics: { listen: host } } });
    await expect(second.sidecar.openMetrics(VERSION)).rejects.toThrow(
      `the listener of the metrics cannot listen at ${host}, which is in use: end what listens there, or change metrics.listen or SALLYPORT_METRICS_LISTEN`,
    );
  });
});

describe('what is named exists', () => {
  const names = new Set(
    sidecarMetrics.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
  const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
  const namedIn = (text: string): readonly string[] =>
    [...text.matchAll(/\b((?:sallyport|process|nodejs)_[a-z0-9_]+)\b/g)].map(([, name = '']) => name);

  it.each(['config/prometheus-alerts.yml', 'config/grafana-dashboard.json'])('in %s', (file) => {
    const named = namedIn(read(file));
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });

  it('and each alert says what it means and what to do', () => {
    const alerts = read('config/prometheus-alerts.yml')
      .split(/^ +- alert: /m)
      .slice(1);
    expect(alerts.length).toBeGreaterThan(8);
    for (const alert of alerts) {
      const [name = ''] = alert.split('\n');
      expect(name).toMatch(/^Sallyport[A-Z]\w+$/);
      for (const key of ['expr', 'for', 'severity', 'summary', 'runbook'])
        expect(`${name}: ${alert}`).toMatch(new RegExp(`^ +${key}: \\S`, 'm'));
    }
    if (spawnSync('promtool', ['--version']).error === undefined)
      execFileSync('promtool', ['check', 'rules', join(projectRoot, 'config/prometheus-alerts.yml')]);
  });

  it('and each panel has a title, a unit and expressions', () => {
    const { title, panels, uid } = JSON.parse(read('config/grafana-dashboard.json'));
    expect([title, uid]).toEqual(['Sallyport', 'sallyport']);
    expect(panels.length).toBeGreaterThan(10);
    for (const panel of panels.filter(({ type }: { type: string }) => type !== 'row')) {
      expect(panel).toMatchObject({
        title: expect.stringMatching(/\S/),
        fieldConfig: { defaults: { unit: expect.any(String) } },
      });
      for (const { expr } of panel.targets) expect(expr).toMatch(/sallyport_|process_|nodejs_/);
      expect(panel.targets.length).toBeGreaterThan(0);
    }
  });

  it('and docs/metrics.md lists each metric as it is', () => {
    const rows = sidecarMetrics.map(
      ({ name, type, labels, help }) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
    );
    const listed = read('docs/metrics.md')
      .split('\n')
      .filter((line) => /^\| `(sallyport|process|nodejs)_/.test(line));
    expect(listed).toEqual(rows);
  });
});

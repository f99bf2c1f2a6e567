// The metrics of `sallyport proxy` as a process: the address in its ready line, and what the process itself counts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ReadMetrics, readMetrics } from '../sidecar/metrics/metric-text.ts';
import { createScratch } from '../support/scratch.ts';
import { program, projectRoot, runToEnd, spawnSallyport } from '../support/spawned-process.ts';

it('the metrics of a proxy show its version, its memory and its reloads', async () => {
  await using scratch = await createScratch();
  const secrets = await scratch.write('secrets', 'A=1\n');
  await using sallyport = await spawnSallyport({
    proxyConfig: { rules: [] },
    env: {
      SALLYPORT_METRICS_LISTEN: '127.0.0.1:0',
      SALLYPORT_SECRETS_FILE: secrets,
      SALLYPORT_WATCH: 'false',
    },
  });
  const ready = await sallyport.process.record(({ msg }) => msg === 'ready');
  const read = async (): Promise<ReadMetrics> =>
    readMetrics(await (await fetch(`${ready['metrics']}/metrics`)).text());
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const before = await read();
  expect(before.sum('sallyport_build_info', { version, node: process.versions.node })).toBe(1);
  expect(before.sum('sallyport_ready')).toBe(1);
  expect(before.sum('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
  expect(before.sum('sallyport_client_connections_limit')).toBeGreaterThan(0);
  await scratch.write('secrets', 'no line of a secret\n');
  sallyport.process.kill('SIGHUP');
  await sallyport.process.record(({ level }) => level === 'error');
  const after = await read();
  expect(after.sum('sallyport_reloads_total', { result: 'failed' })).toBe(1);
  expect(after.sum('sallyport_configuration_current')).toBe(0);
  sallyport.process.kill('SIGTERM');
  expect(await sallyport.process.exited).toEqual({ code: 0, signal: null });
});

it('a proxy whose metrics cannot be opened does not start, and says which setting to change', async () => {
  await using scratch = await createScratch();
  const env = {
    SALLYPORT_LISTEN: '127.0.0.1:0',
    SALLYPORT_ADMIN_LISTEN: 'off',
    SALLYPORT_STATE_DIR: scratch.path,
    SALLYPORT_METRICS_LISTEN: '127.0.0.1:0',
    SALLYPORT_METRICS_TOKEN_FILE: `${scratch.path}/none`,
  };
  const { code, stderr } = await runToEnd(process.execPath, [program, 'proxy'], { env });
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('metrics.token_file (SALLYPORT_METRICS_TOKEN_FILE)'),
  ]);
});

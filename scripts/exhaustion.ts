// The exhaustion part of `npm run stress`: each attack against one process while a bystander keeps sending requests. Measures
// the memory at the peak and afterwards, the responses to the bystander, and the longest delay of the event loop. Exceeding a
// limit is an error.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { percentilesOf } from '../bench/support/percentiles.ts';
import { respondByPath } from '../test/attacks/load/load-origin.ts';
import { lookUntil } from '../test/e2e/deadline.ts';
import { sampleResident } from '../test/e2e/resident-sampler.ts';
import { createAdminClient } from '../test/support/admin-client.ts';
import { createCallbackEndpoint } from '../test/support/callback-endpoint.ts';
import { createOrigin } from '../test/support/recording-origin.ts';
import { type SpawnedSallyport, spawnSallyport } from '../test/support/spawned-process.ts';
import { createTestAuthority } from '../test/support/test-authority.ts';
import { WireClient } from '../test/support/wire-client.ts';
import { type Attack, type Target, attacks } from './exhaustion-attacks.ts';

const MAX_RESIDENT_BYTES = 384 * 1024 * 1024;
const BYSTANDERS_TOKEN = 'token-of-the-bystander';
const MAX_KEPT_SHARE = 0.15;
const RECOVERY_MS = 60_000;
/** A shorter attack is repeated, so that the bystander is affected by it. */
const AT_LEAST_MS = 4_000;
/** Of a bystander that shares two cores with the attack, its sender and its host. */
const MAX_P99_MS = 2_000;
const NAMES = [
  'api.test',
  ...count(300, (n) => `n${n}.many.test`),
  ...count(500, (n) => `n${n}.called.test`),
];
/** Shorter than the defaults, so that they expire within seconds. */
const TIMES: Readonly<Record<string, string>> = {
  SALLYPORT_TIMEOUTS_HEAD_MS: '3000',
  SALLYPORT_TIMEOUTS_CLIENT_IDLE_MS: '5000',
  SALLYPORT_TIMEOUTS_DNS_MS: '2000',
};

type Measured = { readonly lines: readonly string[]; readonly errors: readonly string[] };

/** Calls `report` after each attack. */
export async function runExhaustion(report: (lines: readonly string[]) => void): Promise<readonly string[]> {
  const authority = createTestAuthority();
  const tls = { authority, names: NAMES };
  await using secure = await createOrigin({ tls, respond: respondByPath });
  await using clear = await createOrigin({ respond: respondByPath });
  await using callback = await createCallbackEndpoint({ headers: { 'X-Called': 'value' } });
  await using proxy = await spawnSallyport({
    proxyConfig: documentOf(callback.url),
    upstreamCaPem: authority.certificatePem,
    preloads: [join(import.meta.dirname, 'exhaustion-vitals.ts')],
    env: TIMES,
    onExchange: () => undefined,
  });
  await addBystanderSandbox(proxy);
  const caPem = await readFile(proxy.caFile, 'utf8');
  const target = { port: proxy.port, caPem, securePort: secure.port, clearPort: clear.port };
  let sample = 0;
  const collected = async (): Promise<Loop> => {
    sample += 1;
    const nth = sample;
    proxy.process.kill('SIGUSR2');
    const record = await proxy.process.record((one) => one['msg'] === 'vitals' && one['sample'] === nth);
    return { worstMs: Number(record['worstMs']), p99Ms: Number(record['p99Ms']) };
  };
  const errors: string[] = [];
  const all = async (baseline: number | undefined): Promise<void> => {
    for (const attack of attacks) {
      const seen = await measure(attack, target, proxy, { collected, baseline });
      report(seen.lines);
      errors.push(...seen.errors.map((error) => `${attack.what}: ${error}`));
    }
  };
  // Code, buffers and caches that are created once are not growth; what a second round adds would be.
  report(['the first round']);
  await all(undefined);
  await collected();
  report(['the second round']);
  await all(proxy.process.usage().residentBytes);
  return errors;
}

type Loop = { readonly worstMs: number; readonly p99Ms: number };

async function measure(
  { what, run }: Attack,
  target: Target,
  { process: child }: SpawnedSallyport,
  { collected, baseline }: { collected: () => Promise<Loop>; baseline: number | undefined },
): Promise<Measured> {
  await collected();
  const before = child.usage().residentBytes;
  using memory = sampleResident(child);
  const bystander = await createBystander(target);
  const untilMs = performance.now() + AT_LEAST_MS;
  do await run(target);
  while (performance.now() < untilMs);
  const { latencies, errors } = await bystander.stop();
  const loop = await collected();
  const startedMs = performance.now();
  const most = baseline === undefined ? Number.POSITIVE_INFINITY : baseline * (1 + MAX_KEPT_SHARE);
  const after = await lookUntil(
    () => child.usage().residentBytes,
    (bytes) => bytes <= most,
    RECOVERY_MS,
  );
  const recoveryMs = performance.now() - startedMs;
  const { count: responses, p50, p99 } = percentilesOf([Float64Array.from(latencies)]);
  return {
    lines: [
      what,
      `  resident: ${mib(before)} before, ${mib(memory.peakBytes)} at the peak, ${mib(after)} ${(recoveryMs / 1000).toFixed(1)} s afterwards`,
      `  bystander: ${responses} responses, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; loop: p99 ${loop.p99Ms.toFixed(1)} ms, at worst ${loop.worstMs.toFixed(0)} ms`,
    ],
    errors: [
      ...errors,
      ...(memory.peakBytes <= MAX_RESIDENT_BYTES ? [] : [`${mib(memory.peakBytes)} were resident`]),
      ...(after <= most ? [] : [`${mib(after)} remain, more than ${mib(most)}`]),
      ...(p99 <= MAX_P99_MS ? [] : [`the bystander's p99 was ${p99.toFixed(0)} ms`]),
    ],
  };
}

/** In a sandbox of its own: limits within one sandbox are not tested here. */
async function addBystanderSandbox({ process: child }: SpawnedSallyport): Promise<void> {
  const ready = await child.record(({ msg }) => msg === 'ready');
  const token = (await readFile(String(ready['admin_token']), 'utf8')).trim();
  const box = { id: 'bystander', token: BYSTANDERS_TOKEN, proxy_config: { rules: [ruleFor(['api.test'])] } };
  const { status, text } = await createAdminClient(String(ready['admin']), token)(
    'POST',
    '/v1/sandboxes',
    box,
  );
  if (status !== 201) throw new Error(`the bystander's sandbox: ${text}`);
}

type Bystander = { stop(): Promise<{ latencies: readonly number[]; errors: readonly string[] }> };

/** Sends requests on one connection without a pause: with the short timeouts of the attack an idle one would be closed. */
async function createBystander({ port, caPem, securePort }: Target): Promise<Bystander> {
  const host = `api.test:${securePort}`;
  const client = await WireClient.connect(port);
  await client.openTunnel(host, [`Proxy-Authorization: Bearer ${BYSTANDERS_TOKEN}`]);
  await client.startTls({ ca: caPem, name: 'api.test' });
  const latencies: number[] = [];
  const errors: string[] = [];
  const stopping = new AbortController();
  const askAgain = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const startedMs = performance.now();
      await client.send(`GET /bystander HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      const { head, text } = await client.readResponse();
      latencies.push(performance.now() - startedMs);
      if (head.status !== 200 || text !== 'fine') errors.push(`the bystander got ${head.status}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const running = askAgain().catch((error: unknown) => {
    errors.push(`the bystander lost its connection: ${String(error)}`);
  });
  return {
    async stop() {
      stopping.abort();
      await running;
      await client[Symbol.asyncDispose]();
      return { latencies, errors };
    },
  };
}

function ruleFor(hosts: readonly string[]): object {
  return { match_hosts: hosts, headers: [{ name: 'X-Key', type: 'opaque', value: 'value-of-the-rule' }] };
}

function documentOf(url: string): object {
  return {
    rules: [ruleFor(['api.test', '*.many.test'])],
    callbacks: [{ match_hosts: ['*.called.test'], url, ttl_seconds: 60 }],
  };
}

function count(length: number, name: (n: number) => string): readonly string[] {
  return Array.from({ length }, (_, n) => name(n));
}

function mib(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
}

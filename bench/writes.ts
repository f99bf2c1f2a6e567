// What writes to one sandbox cost the client of another: ten documents a second of each legal size, and of all sizes in turn,
// while a bystander asks at a constant rate. `npm run bench -- writes [--package DIR] [--seconds N] [--sizes A,B]` prints for each size
// the bystander's latency without and with writes, which writes were admitted, and how often a third sandbox was written.
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { keepCoresAwake } from './support/awake-cores.ts';
import { type Child, createChildren, residentMb } from './support/children.ts';
import { inspectMachine, warningsOf } from './support/machine.ts';
import { startLoadClient } from './support/measure.ts';
import { layOutPackage } from './support/package.ts';
import { describeProduct } from './support/product.ts';
import type { Round } from './support/round.ts';
import { type Sallyport, startSallyport } from './support/sallyport.ts';
import { createScene } from './support/scene.ts';
import { throughProxy } from './support/subject.ts';
import { formatTable } from './support/table.ts';

const WRITES_A_SECOND = 10;
const REQUESTS_A_SECOND = 300;
const CLIENTS = 4;
const MIB = 1_048_576;
const SIZES: readonly number[] = [1_000, 10_000, 100_000, 366_000, MIB];
const OTHER_EVERY_MS = 500;

const { values: given } = parseArgs({
  options: {
    package: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    sizes: { type: 'string' },
  },
});
const sizes = given.sizes?.split(',').map(Number) ?? SIZES;
const durationMs = Number(given.seconds) * 1000;

type Writes = {
  readonly size: number;
  readonly status: number;
  readonly atMs: number;
  readonly tookMs: number;
};

async function measureAll(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  await using children = createChildren();
  const packageDirectory = given.package === undefined ? layOutPackage(directory) : resolve(given.package);
  const machine = await inspectMachine(children.isPinned);
  const { version, commit } = describeProduct(given.package);
  const { cpu, cores, memory_gb: memory, system, busy_percent: busy } = machine;
  console.log(`${cpu}, ${cores} cores, ${memory} GB, ${system}, ${busy} % busy before`);
  console.log(`Sallyport ${version} ${commit}, Node ${process.version}`);
  warningsOf(machine).forEach((warning) => console.log(`WARNING: ${warning}`));
  keepCoresAwake(children);
  await using scene = await createScene(children, directory);
  const sallyport = await startSallyport(children, scene, { packageDirectory });
  const client = startLoadClient(children, scene);
  const admin = await createWriter(sallyport);
  const add = (id: string): Promise<Writes> =>
    admin('POST', '/v1/sandboxes', JSON.stringify({ id, listen: '127.0.0.1:0' }));
  await add('other');
  const bystander = {
    name: 'bystander',
    pid: sallyport.child.pid,
    target: throughProxy({ port: sallyport.port, caPem: sallyport.caPem }),
  };
  const ask = (): Promise<Round> =>
    client.keepAlive(bystander, {
      clients: CLIENTS,
      durationMs,
      settleMs: 500,
      ratePerSecond: REQUESTS_A_SECOND,
    });
  // The first documents load the thread and its program.
  await ask();
  await admin('PUT', pathOf('other'), documentOf(100_000));
  const rows: (readonly string[])[] = [];
  for (const some of [...sizes.map((size) => [size]), ...(sizes.length > 1 ? [sizes] : [])]) {
    // A new sandbox for each size: the account of the one before may be overdrawn.
    const id = `written-${rows.length}`;
    await add(id);
    rows.push(await measure({ sizes: some, id, ask, admin }));
  }
  console.log(['', ...formatTable([TITLES, ...rows])].join('\n'));
  reportMemory(sallyport.child);
  await client.end();
}

const TITLES = [
  'bytes',
  'p99 ms without',
  'p99 ms with',
  'more',
  'admitted',
  '429',
  'else',
  'largest admitted every s',
  'took ms',
  'other sandbox',
];

async function measure({
  sizes: sent,
  id,
  ask,
  admin,
}: {
  readonly sizes: readonly number[];
  readonly id: string;
  readonly ask: () => Promise<Round>;
  readonly admin: Writer;
}): Promise<readonly string[]> {
  const documents = sent.map(documentOf);
  const without = await ask();
  const stop = new AbortController();
  const writing = writeEvery(1000 / WRITES_A_SECOND, stop.signal, (n) => {
    const document = documents[n % documents.length] ?? '';
    return admin('PUT', pathOf(id), document);
  });
  const others = writeEvery(OTHER_EVERY_MS, stop.signal, () =>
    admin('PUT', pathOf('other'), documentOf(1_000)),
  );
  const busy = await ask();
  stop.abort();
  const [writes, fair] = [await writing, await others];
  const admitted = writes.filter(({ status }) => status === 200);
  const largest = admitted.filter(({ size }) => size === Math.max(...documents.map(({ length }) => length)));
  const gaps = largest.slice(1).map(({ atMs }, i) => atMs - (largest[i]?.atMs ?? 0));
  const [p99, busyP99] = [without['p99_ms'] ?? Number.NaN, busy['p99_ms'] ?? Number.NaN];
  const count = (test: (write: Writes) => boolean): string => String(writes.filter(test).length);
  return [
    sent.length > 1 ? 'all in turn' : String(documents[0]?.length),
    p99.toFixed(1),
    busyP99.toFixed(1),
    (busyP99 - p99).toFixed(1),
    String(admitted.length),
    count(({ status }) => status === 429),
    count(({ status }) => status !== 200 && status !== 429),
    gaps.length === 0 ? `once` : (Math.max(...gaps) / 1000).toFixed(1),
    Math.max(...admitted.map(({ tookMs }) => tookMs)).toFixed(0),
    `${fair.filter(({ status }) => status === 200).length} of ${fair.length}`,
  ];
}

/** Starts a write in each interval, whether or not the one before it has ended. */
async function writeEvery(
  everyMs: number,
  signal: AbortSignal,
  write: (n: number) => Promise<Writes>,
): Promise<readonly Writes[]> {
  const running: Promise<Writes>[] = [];
  const startMs = performance.now();
  for (let n = 0; !signal.aborted; n += 1) {
    running.push(write(n));
    await delay(Math.max(0, startMs + (n + 1) * everyMs - performance.now()));
  }
  return Promise.all(running);
}

type Writer = (method: string, path: string, body: string) => Promise<Writes>;

async function createWriter({ adminUrl, adminTokenFile }: Sallyport): Promise<Writer> {
  const token = (await readFile(adminTokenFile, 'utf8')).trim();
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  return async (method, path, body) => {
    const atMs = performance.now();
    const response = await fetch(new URL(path, adminUrl), { method, headers, body });
    const text = await response.text();
    const { status } = response;
    if (status >= 400 && status !== 429 && status !== 503) throw new Error(`${status} ${text.slice(0, 300)}`);
    return { size: body.length, status, atMs, tookMs: performance.now() - atMs };
  };
}

function pathOf(sandbox: string): string {
  return `/v1/sandboxes/${sandbox}/proxy_config`;
}

/** A legal document of about so many bytes. At 1 MiB it has as many hosts, paths, destinations and headers as are allowed. */
function documentOf(bytes: number): string {
  const rules: object[] = [];
  let left = bytes - 20;
  while (left > 600 && rules.length < 100) {
    const entries = Math.min(100, Math.ceil((left - 500) / 100));
    const rule = ruleOf(rules.length, entries);
    rules.push(rule);
    left -= JSON.stringify(rule).length + 1;
  }
  const document = JSON.stringify({ rules });
  // White space is legal JSON.
  return document + ' '.repeat(Math.max(0, bytes - document.length));
}

function ruleOf(number: number, entries: number): object {
  const each = (text: (i: number) => string): string[] => Array.from({ length: entries }, (_, i) => text(i));
  return {
    name: `rule-${number}`,
    match_hosts: each((i) => `host-${i}.rule-${number}.example.com`),
    match_paths: each((i) => `/v1/items-${i}/of-${number}/*`),
    no_proxy: each((i) => `direct-${i}.rule-${number}.example.org`),
    headers: Array.from({ length: Math.min(10, entries) }, (_, i) => ({
      name: `X-Key-${i}`,
      type: 'opaque',
      value: `value-${number}-${i}-`.padEnd(40, 'x'),
    })),
  };
}

function reportMemory({ pid }: Child): void {
  const { now, peak } = residentMb([pid]);
  console.log(`RSS of the proxy ${now.toFixed(0)} MB, at its highest ${peak.toFixed(0)} MB`);
}

await measureAll();

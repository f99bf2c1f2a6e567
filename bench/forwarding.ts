// What does one injected request cost? CPU per request (utime + stime of the proxy's process) and latency at 1 and at
// 32 keep-alive clients, TLS on both sides, Sallyport beside a bare node:http forwarder. Runs alternate; medians
// with spread. `node bench/forwarding.ts [rounds] [requests]`
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createCertificateAuthority } from '../src/tls/certificate-authority.ts';

const [rounds = '5', requests = '20000'] = process.argv.slice(2);
const root = join(import.meta.dirname, '..');
const scratch = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
const CLOCK_TICKS = 100;

const ca = createCertificateAuthority();
const leaf = ca.issueLeaf({ host: 'api.localhost', kind: 'name' }, new Date());
const file = async (name: string, content: string): Promise<string> => {
  await writeFile(join(scratch, name), content);
  return join(scratch, name);
};
const certFile = await file('cert.pem', leaf.chainPem);
const keyFile = await file('key.pem', leaf.keyPem);
const caFile = await file('ca.pem', ca.certificatePem);

type Running = {
  readonly name: string;
  readonly child: ChildProcess;
  readonly port: number;
  readonly caFile: string;
};

function start(core: number, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  return spawn('taskset', ['-c', String(core), process.execPath, ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: scratch, ...env },
    stdio,
  });
}

async function firstLine(child: ChildProcess, mark: string): Promise<Record<string, unknown>> {
  let seen = '';
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
  child.stdout?.on('data', (chunk: Buffer) => {
    if (seen.includes(mark)) return;
    seen += chunk.toString('utf8');
    const line = seen.split('\n').find((one) => one.includes(mark) && one.endsWith('}'));
    if (line !== undefined) resolve(JSON.parse(line) as Record<string, unknown>);
  });
  child.once('exit', () => reject(new Error(`no ${mark} in: ${seen}`)));
  return promise;
}

async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / CLOCK_TICKS;
}

async function residentMb(pid: number): Promise<number> {
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

type Sample = {
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
};

async function measure(proxy: Running, originPort: number, clients: number, count: number): Promise<Sample> {
  const pid = proxy.child.pid ?? 0;
  const before = await cpuMs(pid);
  const load = start(1, [
    'bench/support/load.ts',
    String(proxy.port),
    `api.localhost:${originPort}`,
    proxy.caFile,
    String(clients),
    String(count),
  ]);
  const result = JSON.parse(await text(load.stdout ?? process.stdin)) as {
    seconds: number;
    p50: number;
    p99: number;
  };
  const used = (await cpuMs(pid)) - before;
  return {
    cpuUs: (used * 1000) / count,
    perSecond: count / result.seconds,
    p50: result.p50,
    p99: result.p99,
  };
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const spread = (values: readonly number[]): string =>
  `${Math.min(...values).toFixed(1)}..${Math.max(...values).toFixed(1)}`;

const origin = start(1, ['bench/support/origin.ts', certFile, keyFile]);
const originPort = Number((await firstLine(origin, 'port'))['port']);

const bare = start(0, ['bench/support/bare-forwarder.ts', certFile, keyFile, caFile, String(originPort)]);
const barePort = Number((await firstLine(bare, 'port'))['port']);

const rules = await file(
  'proxy-config.json',
  JSON.stringify({
    rules: [
      {
        name: 'bench',
        match_hosts: ['api.localhost'],
        match_paths: ['/v1/*'],
        headers: [{ name: 'Authorization', type: 'opaque', value: 'Bearer bench-secret-value' }],
      },
    ],
  }),
);
const startedMs = performance.now();
const sallyport = start(
  0,
  [
    'bin/sallyport.js',
    'proxy',
    '--listen',
    '127.0.0.1:0',
    '--proxy-config',
    rules,
    '--state-dir',
    join(scratch, 'state'),
  ],
  {
    SALLYPORT_UPSTREAM_CA: caFile,
  },
);
const ready = await firstLine(sallyport, '"ready"');
const startMs = performance.now() - startedMs;
const idleMb = await residentMb(sallyport.pid ?? 0);
const proxies: Running[] = [
  { name: 'node:http', child: bare, port: barePort, caFile },
  {
    name: 'sallyport',
    child: sallyport,
    port: Number(new URL(String(ready['proxy'])).port),
    caFile: String(ready['ca']),
  },
];

console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}; proxy on core 0, origin and load on core 1`,
);
console.log(
  `rounds ${rounds}, requests ${requests}; start to ready ${startMs.toFixed(0)} ms, idle ${idleMb.toFixed(0)} MB`,
);
for (const clients of [32, 1]) {
  const count = clients === 1 ? Number(requests) / 4 : Number(requests);
  for (const proxy of proxies) await measure(proxy, originPort, clients, count);
  const samples = new Map(proxies.map(({ name }) => [name, [] as Sample[]]));
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const proxy of round % 2 ? proxies : proxies.toReversed()) {
      samples.get(proxy.name)?.push(await measure(proxy, originPort, clients, count));
    }
  }
  for (const [name, list] of samples) {
    const cpu = list.map((one) => one.cpuUs);
    console.log(
      `${String(clients).padStart(3)} clients  ${name.padEnd(10)} CPU ${median(cpu).toFixed(1)} us/request (${spread(cpu)})  ` +
        `${median(list.map((one) => one.perSecond)).toFixed(0)}/s  p50 ${median(list.map((one) => one.p50)).toFixed(3)} ms  p99 ${median(list.map((one) => one.p99)).toFixed(3)} ms`,
    );
  }
  const of = (name: string): number => median((samples.get(name) ?? []).map((one) => one.cpuUs));
  console.log(
    `${String(clients).padStart(3)} clients  ratio sallyport / node:http = ${(of('sallyport') / of('node:http')).toFixed(2)}`,
  );
}
console.log(`loaded ${(await residentMb(sallyport.pid ?? 0)).toFixed(0)} MB`);
for (const child of [origin, bare, sallyport]) child.kill('SIGKILL');
await rm(scratch, { recursive: true, force: true });

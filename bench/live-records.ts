// What it costs others that somebody looks: `npm run bench -- live-records [--rate N] [--rounds N] [--seconds N] [--pages N] [--tails N]`. The latency of a bystander
// beside so many records a second, in turn without readers and with pages and tails. Ends with 1 when its p99 grows by more than a quarter.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { inspectMachine, warningsOf } from './support/machine.ts';
import { layOutPackage } from './support/package.ts';
import { percentile } from './support/percentiles.ts';

const { values: given } = parseArgs({
  options: {
    rate: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '5' },
    pages: { type: 'string', default: '1' },
    tails: { type: 'string', default: '1' },
  },
});
const [pages, tails] = [Number(given.pages), Number(given.tails)];
const [rate, rounds, seconds] = [Number(given.rate), Number(given.rounds), Number(given.seconds)];
const MAX_RATIO = 1.25;
const ASK_EVERY_MS = 2;
const END = '\r\n\r\nok';

type Proxy = {
  readonly child: ChildProcess;
  readonly port: number;
  readonly admin: string;
  readonly token: string;
  readonly originPort: string;
};
type Round = { readonly p50: number; readonly p99: number; readonly records: number };

const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

/** The first of two cores is that of the proxy, and the other that of all who use it. Readers take what the bystander leaves of that. */
function onCore(
  core: number,
  args: readonly string[],
  { stdout = 'pipe', isNice = false }: { stdout?: number | 'pipe'; isNice?: boolean } = {},
): ChildProcess {
  const lowest = isNice ? ['chrt', '--idle', '0'] : [];
  const env = { PATH: process.env['PATH'], HOME: directory, SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0' };
  return spawn('taskset', ['-c', String(core), ...lowest, process.execPath, ...args], {
    env,
    stdio: ['ignore', stdout, 'inherit'],
  });
}

async function startProxy(originPort: string): Promise<Proxy> {
  const launcher = join(layOutPackage(directory), 'bin', 'sallyport.js');
  const log = join(directory, 'records.jsonl');
  const args = [launcher, 'proxy', '--listen', '127.0.0.1:0', '--state-dir', join(directory, 'state')];
  const child = onCore(0, args, { stdout: openSync(log, 'w') });
  for (;;) {
    const line = readFileSync(log, 'utf8')
      .split('\n')
      .find((one) => one.includes('"msg":"ready"'));
    if (line !== undefined) {
      const { proxy, admin, admin_token: token } = JSON.parse(line) as Record<string, string>;
      return {
        child,
        port: Number(new URL(proxy ?? '').port),
        admin: admin ?? '',
        token: token ?? '',
        originPort,
      };
    }
    if (child.exitCode !== null) throw new Error('the proxy does not start');
    await delay(20);
  }
}

function script(name: string): string {
  return join(import.meta.dirname, 'live-records', name);
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the program has no output');
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error('the program ended without a line');
}

async function startReaders({ admin, token }: Proxy): Promise<ChildProcess> {
  const child = onCore(1, [script('readers.ts'), admin, token, String(pages), String(tails)], {
    isNice: true,
  });
  await firstLine(child);
  return child;
}

async function askOnce(socket: ReturnType<typeof connect>, origin: string): Promise<number> {
  const request = `GET http://127.0.0.1:${origin}/ HTTP/1.1\r\nHost: 127.0.0.1:${origin}\r\n\r\n`;
  const startMs = performance.now();
  let text = '';
  const { promise, resolve } = Promise.withResolvers<number>();
  const take = (piece: string): void => {
    text += piece;
    if (!text.endsWith(END)) return;
    socket.off('data', take);
    resolve(performance.now() - startMs);
  };
  socket.on('data', take).write(request);
  return promise;
}

async function measure(proxy: Proxy): Promise<Round> {
  const flood = onCore(1, [
    script('flood.ts'),
    String(proxy.port),
    proxy.originPort,
    String(rate),
    String(seconds + 1),
  ]);
  const counted = firstLine(flood);
  await delay(500);
  const socket = connect({ port: proxy.port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1');
  await once(socket, 'connect');
  const latencies: number[] = [];
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    latencies.push(await askOnce(socket, proxy.originPort));
    await delay(ASK_EVERY_MS);
  }
  socket.destroy();
  const records = Number(await counted) / (seconds + 1);
  const sorted = latencies.toSorted((a, b) => a - b);
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), records };
}

function residentMb({ pid }: ChildProcess): number {
  const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const machine = await inspectMachine(true);
console.log(
  `${machine.cpu}, ${machine.cores} cores, Node ${process.versions.node}, ${machine.busy_percent} % busy before`,
);
warningsOf(machine).forEach((warning) => console.log(`WARNING: ${warning}`));
const origin = onCore(1, [script('origin.ts')]);
const proxy = await startProxy(await firstLine(origin));
await measure(proxy);
const sides: { alone: Round[]; watched: Round[] } = { alone: [], watched: [] };
for (let round = 0; round < rounds; round += 1) {
  const alone = await measure(proxy);
  const readers = await startReaders(proxy);
  const watched = await measure(proxy);
  readers.kill();
  await once(readers, 'exit');
  sides.alone.push(alone);
  sides.watched.push(watched);
}
const shown = (all: readonly Round[]): string => {
  const of = (key: keyof Round): number => median(all.map((one) => one[key]));
  return `p50 ${of('p50').toFixed(2)} ms, p99 ${of('p99').toFixed(2)} ms, ${of('records').toFixed(0)} records/s`;
};
console.log(`bystander without readers:             ${shown(sides.alone)}`);
console.log(`bystander with ${pages} pages and ${tails} tails:      ${shown(sides.watched)}`);
// Of a round it is a few collections of garbage: the ratio is that of the medians, not the median of ratios.
const ratio = median(sides.watched.map((one) => one.p99)) / median(sides.alone.map((one) => one.p99));
console.log(`p99, medians of ${rounds} rounds each: ${ratio.toFixed(2)} x, at most ${MAX_RATIO}`);
console.log(`proxy: ${residentMb(proxy.child).toFixed(0)} MB resident`);
const exited = once(proxy.child, 'exit');
proxy.child.kill();
await exited;
origin.kill();
process.exitCode = ratio <= MAX_RATIO ? 0 : 1;

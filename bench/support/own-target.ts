// `--target URL`: what Sallyport adds to requests for the user's own host, with the user's own rules. One client, directly and
// through the proxy in turns: requests on a kept-alive connection, and clients of one request each. It sends few requests
// and prints how many. Every response through the proxy must be a success; a direct one has no credential and may be refused.
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createSecureContext, getCACertificates } from 'node:tls';
import { type Child, type Children, cpuMs } from './children.ts';
import type { Options } from './options.ts';
import { type Open, agentOf, exchange, openDirect, openThrough } from './own-connection.ts';
import { checkDirect, checkThrough, statusError } from './own-check.ts';
import { percentilesOf } from './percentiles.ts';
import { type Round, type Run, type Series, figureOf, measureInTurns, seriesOf } from './round.ts';
import { spawnSallyport, waitForReady } from './sallyport.ts';
import { formatSpread, formatTable } from './table.ts';

const REQUESTS = 20;

/** Returns what to print. */
export async function measureTarget(
  children: Children,
  { directory, packageDirectory, options }: { directory: string; packageDirectory: string; options: Options },
): Promise<string> {
  const url = new URL(options.target ?? '');
  const { child, port, caPem, recordsFile } = await startProxy(
    children,
    directory,
    packageDirectory,
    resolve(options.rules ?? ''),
  );
  // One for both sides: reading all roots takes longer than a handshake.
  const trust = createSecureContext({ ca: [...getCACertificates('default'), caPem] });
  const direct: Open = () => openDirect(url, trust);
  const through: Open = () => openThrough(url, port, trust);
  await checkDirect(url, direct);
  await checkThrough(url, through, { recordsFile, rules: options.rules ?? '' });
  const statuses = new Map<string, Set<number>>();
  const run = (load: string, subject: 'direct' | 'sallyport'): Run => ({
    load,
    subject,
    async measure() {
      const open = subject === 'direct' ? direct : through;
      const pids = subject === 'direct' ? [] : [child.pid];
      const beforeMs = cpuMs(pids);
      const { latencies, seen } = await (load === 'keep-alive'
        ? keepAlive(url, open)
        : shortLived(url, open));
      const known = statuses.getOrInsertComputed(subject, () => new Set());
      seen.forEach((status) => known.add(status));
      const failed = seen.find((status) => status >= 400);
      if (subject === 'sallyport' && failed !== undefined) throw statusError(url, failed);
      const { p50, p99 } = percentilesOf([Float64Array.from(latencies)]);
      const cpu: Round =
        pids.length === 0 ? {} : { cpu_us: ((cpuMs(pids) - beforeMs) * 1000) / latencies.length };
      return { p50_ms: p50, p99_ms: p99, ...cpu };
    },
  });
  const loads = ['keep-alive', 'short-lived'];
  const runs = loads.flatMap((load) => [run(load, 'direct'), run(load, 'sallyport')]);
  // The first requests pay for lookups and upstream connections.
  for (const each of runs) await each.measure();
  const series = await measureInTurns(runs, { rounds: options.effort.rounds, untilMs: Infinity });
  await child.stop();

  const seen = [...statuses].map(([name, found]) => `${name} ${[...found].join(' ')}`).join(', ');
  // And the two requests of the checks.
  const total = REQUESTS * runs.length * (options.effort.rounds + 1) + 2;
  return [`${total} requests to ${url.href}; statuses: ${seen}`, '', ...formatSeries(series)].join('\n');
}

function formatSeries(series: readonly Series[]): readonly string[] {
  const cell = (each: Series, name: string, digits: number): string => {
    const found = figureOf(each, name);
    return found === undefined ? '' : formatSpread(found, digits);
  };
  const rows = series.map((each) => [
    `${each.load}, ${each.subject}`,
    cell(each, 'p50_ms', 2),
    cell(each, 'p99_ms', 2),
    cell(each, 'cpu_us', 0),
  ]);
  const median = (load: string, subject: string): number =>
    figureOf(seriesOf(series, load, subject), 'p50_ms')?.median ?? Number.NaN;
  const added = (load: string): string => (median(load, 'sallyport') - median(load, 'direct')).toFixed(2);
  return [
    ...formatTable([['', 'p50 ms', 'p99 ms', 'CPU us/request'], ...rows]),
    '',
    `Sallyport adds ${added('keep-alive')} ms at p50 to a request on a kept-alive connection, and ${added('short-lived')} ms to a client of one request.`,
  ];
}

type OwnProxy = {
  readonly child: Child;
  readonly port: number;
  readonly caPem: string;
  readonly recordsFile: string;
};

async function startProxy(
  children: Children,
  directory: string,
  packageDirectory: string,
  rules: string,
): Promise<OwnProxy> {
  const stateDirectory = join(directory, 'target-state');
  mkdirSync(stateDirectory, { mode: 0o700 });
  const recordsFile = join(directory, 'target.jsonl');
  const common = { name: 'sallyport', packageDirectory, listen: '127.0.0.1:0', stateDirectory, recordsFile };
  // The user's own settings and secrets, as for `sallyport proxy`.
  const own = Object.entries(process.env).filter(([name]) => name.startsWith('SALLYPORT_'));
  const settings = Object.fromEntries(own) as Record<string, string>;
  const child = spawnSallyport(children, common, { ...settings, SALLYPORT_PROXY_CONFIG: rules });
  const ready = await waitForReady(child, recordsFile);
  const port = Number(new URL(ready.proxy).port);
  return { child, port, caPem: readFileSync(ready.ca, 'utf8'), recordsFile };
}

type Exchanges = { readonly latencies: readonly number[]; readonly seen: readonly number[] };

async function keepAlive(url: URL, open: Open): Promise<Exchanges> {
  const socket = await open();
  const [latencies, seen]: [number[], number[]] = [[], []];
  const agent = agentOf(socket);
  for (let i = 0; i < REQUESTS; i += 1) {
    const startedMs = performance.now();
    seen.push((await exchange(url, agent)).status);
    latencies.push(performance.now() - startedMs);
  }
  socket.destroy();
  return { latencies, seen };
}

async function shortLived(url: URL, open: Open): Promise<Exchanges> {
  const [latencies, seen]: [number[], number[]] = [[], []];
  for (let i = 0; i < REQUESTS; i += 1) {
    const startedMs = performance.now();
    const socket = await open();
    seen.push((await exchange(url, agentOf(socket))).status);
    latencies.push(performance.now() - startedMs);
    socket.destroySoon();
  }
  return { latencies, seen };
}

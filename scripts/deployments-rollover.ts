// `npm run deployments:rollover [-- --redeploys 20 --rollbacks 5 --rate 200 --streams 50 --sockets 20]`: replaces a deployment again and again
// under load, by clients that never retry. Exits with 1 when a request failed, a stream was not whole, a WebSocket was not closed with 1001 and open
// again at once, or an old version responded after its successor was deployed.
import { cp, readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { type DeploymentScene, startScene } from './deployment-scene.ts';
import { keepStreams, type LoadTarget, sendRequests } from './rollover-load.ts';
import { openSocketRollover, type SocketResult } from './rollover-sockets.ts';

const { values } = parseArgs({
  options: {
    redeploys: { type: 'string', default: '20' },
    rollbacks: { type: 'string', default: '5' },
    rate: { type: 'string', default: '200' },
    streams: { type: 'string', default: '50' },
    sockets: { type: 'string', default: '20' },
  },
});
const [redeploys, rollbacks, rate, streams, sockets] = [
  values.redeploys,
  values.rollbacks,
  values.rate,
  values.streams,
  values.sockets,
].map(Number) as [number, number, number, number, number];
/** Of a stream, half a second apart. */
const TICKS = 20;
const MIN_REQUESTS = 10_000;
const SHOWN_FAILURES = 20;

const problems: string[] = [];

async function deploy(scene: DeploymentScene, args: readonly string[]): Promise<string> {
  const began = performance.now();
  const { code, stdout, stderr } = await scene.deploy(args);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(
    `  sallyport deploy ${args.map((arg) => arg.replace(scene.scratch, '')).join(' ')}: ${code} after ${seconds} s`,
  );
  if (code !== 0) problems.push(`deploy ${args.join(' ')} ended with ${code}:\n${stderr}`);
  return stdout.trim();
}

async function writeVersion(app: string, version: number): Promise<void> {
  const file = join(app, 'ticker.ts');
  const source = await readFile(file, 'utf8');
  await writeFile(file, source.replace(/VERSION = \d+/, `VERSION = ${version}`));
}

async function versionOf({ url, key }: LoadTarget): Promise<number> {
  const response = await fetch(`${url}/runs/wait`, {
    method: 'POST',
    headers: { 'X-Api-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'ticker', input: { ticks: 0, pauseMs: 0 } }),
  });
  const body = (await response.json()) as { readonly version?: number };
  return body.version ?? Number.NaN;
}

async function expectVersion(target: LoadTarget, expected: number): Promise<void> {
  const version = await versionOf(target);
  if (version !== expected) problems.push(`version ${version} responded, and ${expected} is deployed`);
}

/** `replaceSockets`: what speaks WebSocket is replaced as often. */
async function replaceAgainAndAgain(
  scene: DeploymentScene,
  app: string,
  { target, replaceSockets }: { readonly target: LoadTarget; replaceSockets(): Promise<void> },
): Promise<void> {
  for (let version = 1; version <= redeploys; version += 1) {
    await writeVersion(app, version);
    await Promise.all([deploy(scene, [app]), replaceSockets()]);
    await expectVersion(target, version);
  }
  // Each goes back to what was deployed before the active revision.
  for (let nth = 1; nth <= rollbacks; nth += 1) {
    await Promise.all([deploy(scene, ['rollback', 'app']), replaceSockets()]);
    await expectVersion(target, nth % 2 === 1 ? redeploys - 1 : redeploys);
  }
}

/** Each client is asked to connect again once by each replacement, and by nothing else. */
function printSockets({ opened, closed, messages, reopenedMs, failures }: SocketResult): void {
  const codes = [...closed].map(([code, count]) => `${count} x ${code}`).join(', ');
  const sorted = reopenedMs.toSorted((a, b) => a - b);
  console.log(
    `WebSockets: ${opened} opened, closed: ${codes}; ${messages} messages; from the close to the first response of the next one p50 ${percentile(sorted, 0.5)} ms, most ${percentile(sorted, 1)} ms; ${failures.length} failures`,
  );
  const expected = sockets * (redeploys + rollbacks);
  if (closed.get(1001) !== expected)
    problems.push(`${closed.get(1001) ?? 0} WebSockets were closed with 1001, and ${expected} should be`);
}

function percentile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(1);
}

async function main(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  console.log(`${cpus().length} x ${cpus()[0]?.model.trim()}, Node ${process.versions.node}`);
  // A key may send more requests in a minute than a tenant should.
  const scene = await startScene(cleanup);
  const app = join(scene.scratch, 'app');
  await cp(join(import.meta.dirname, 'rollover-source'), app, { recursive: true });
  const target = { url: await deploy(scene, [app]), key: scene.key };
  const stopped = new AbortController();
  const load = sendRequests(target, rate, stopped.signal);
  const open = keepStreams(target, streams, TICKS, stopped.signal);
  const speaking = await openSocketRollover(cleanup, scene, sockets);
  const beganMs = performance.now();
  await replaceAgainAndAgain(scene, app, { target, replaceSockets: () => speaking.replace() });
  stopped.abort();
  const seconds = (performance.now() - beganMs) / 1000;
  const [{ requests, latenciesMs, failures }, { whole, failures: broken }] = await Promise.all([load, open]);
  const spoken = await speaking.end();
  printSockets(spoken);
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  console.log(
    `requests: ${requests}, ${(requests / seconds).toFixed(0)} a second, failed: ${failures.length}; p50 ${percentile(sorted, 0.5)} ms, p99 ${percentile(sorted, 0.99)} ms, most ${percentile(sorted, 1)} ms`,
  );
  console.log(`streams: ${whole} whole, ${broken.length} not`);
  console.log(
    `machine: load ${loadavg()
      .map((one) => one.toFixed(1))
      .join(' ')} at the end`,
  );
  for (const failure of [...failures, ...broken, ...spoken.failures].slice(0, SHOWN_FAILURES))
    console.log(`FAILED: ${failure}`);
  for (const problem of problems) console.log(`BROKEN: ${problem}`);
  if (requests < MIN_REQUESTS) console.log(`fewer than ${MIN_REQUESTS} requests: this shows little`);
  const failed = failures.length + broken.length + spoken.failures.length;
  const isGood = failed + problems.length === 0 && requests >= MIN_REQUESTS;
  process.exitCode = isGood ? 0 : 1;
}

await main();
process.exit();

// A load over HTTP/2 through a real process: four connections of a client, each always full of streams, first undisturbed,
// then with resets from both sides and hosts that send GOAWAY. Returns figures; the caller evaluates them.
import type { ClientHttp2Session } from 'node:http2';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Percentiles } from '../../bench/support/percentiles.ts';
import { openH2Tunnel } from '../support/h2-tunnel.ts';
import { type SpawnedSallyport, projectRoot, spawnSallyport } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { lookUntil } from './deadline.ts';
import { LoadLedger } from './h2-load-ledger.ts';
import { INJECTED, type LoadOrigin, ORIGIN_NAME, createLoadOrigin } from './h2-load-origin.ts';
import { type LoadRequest, type Verdict, ask, calmRequest, disturbedRequest } from './h2-load-request.ts';

export type LoadFigures = {
  readonly requests: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  /** Requests that had not ended when no more progress was made. */
  readonly hanging: number;
  readonly misrecorded: number;
  /** The first few violations. */
  readonly errors: readonly string[];
  /** Of the undisturbed part. */
  readonly perSecond: number;
  readonly latency: Percentiles;
  /** Memory of the process after a garbage collection: before and after the undisturbed part, and at the end. */
  readonly residentBytes: { readonly before: number; readonly calm: number; readonly end: number };
  /** At the end of the undisturbed part, with its garbage. */
  readonly uncollectedBytes: number;
  /** Sessions at the origin. */
  readonly upstreamSessions: number;
  readonly isSameProcess: boolean;
};

const CONNECTIONS = 4;
const STREAMS = 100;
/**
 * Streams per connection where streams are reset: node:http2 still counts a stream for a moment after its reset, and
 * refuses (ENHANCE_YOUR_CALM) the next one on a connection that is full.
 */
const DISTURBED_STREAMS = 90;
/** When no request has ended for this long, the open ones hang. */
const STALLED_MS = 20_000;
const LOOK_MS = 500;
/** The proxy accepts a sustained rate of 33 resets a second on one connection. */
const CANCEL_EVERY_MS = 50;
const RECORDED_MS = 10_000;

type Stage = {
  readonly proxy: SpawnedSallyport;
  readonly origin: LoadOrigin;
  readonly sessions: readonly ClientHttp2Session[];
  readonly ledger: LoadLedger;
};

/** `warmUp` requests, then `calm` ones, then `disturbed` ones. */
export async function runH2Load(parts: {
  readonly warmUp: number;
  readonly calm: number;
  readonly disturbed: number;
}): Promise<LoadFigures> {
  const { warmUp, calm, disturbed } = parts;
  const requests = warmUp + calm + disturbed;
  const ledger = new LoadLedger(requests);
  const authority = createTestAuthority();
  await using origin = await createLoadOrigin(authority);
  const headers = [{ name: 'Authorization', type: 'plaintext', value: INJECTED }];
  await using proxy = await spawnSallyport({
    proxyConfig: { rules: [{ name: 'load', match_hosts: [ORIGIN_NAME], headers }] },
    upstreamCaPem: authority.certificatePem,
    preloads: [join(projectRoot, 'test', 'support', 'collect-on-signal.ts')],
    onExchange: (record) => ledger.record(record),
  });
  const { pid } = proxy.process;
  const target = {
    proxyPort: proxy.port,
    authority: `${ORIGIN_NAME}:${origin.port}`,
    ca: await readFile(proxy.caFile, 'utf8'),
  };
  const sessions = await Promise.all(Array.from({ length: CONNECTIONS }, () => openH2Tunnel(target)));
  const stage = { proxy, origin, sessions, ledger };
  await run(stage, { from: 0, to: warmUp }, STREAMS, calmRequest);
  const before = await collect(proxy, 1);
  ledger.forgetLatencies();
  const startedMs = performance.now();
  await run(stage, { from: warmUp, to: warmUp + calm }, STREAMS, calmRequest);
  const perSecond = calm / ((performance.now() - startedMs) / 1000);
  const { latency } = ledger;
  const uncollectedBytes = proxy.process.usage().residentBytes;
  const collected = await collect(proxy, 2);
  await run(stage, { from: warmUp + calm, to: requests }, DISTURBED_STREAMS, disturbedRequest);
  await lookUntil(
    () => ledger.unrecorded,
    (unrecorded) => unrecorded === 0,
    RECORDED_MS,
  );
  const end = await collect(proxy, 3);
  for (const session of sessions) session.destroy();
  return {
    requests,
    counts: ledger.counts,
    hanging: requests - ledger.ended,
    misrecorded: ledger.misrecorded,
    errors: ledger.errors,
    perSecond,
    latency,
    residentBytes: { before, calm: collected, end },
    uncollectedBytes,
    upstreamSessions: origin.sessions,
    isSameProcess: isAlive(pid),
  };
}

/** Sends these requests, as many at once as the connections allow; resolves when all have ended or none makes progress. */
async function run(
  { sessions, ledger }: Stage,
  { from, to }: { readonly from: number; readonly to: number },
  streams: number,
  requestOf: (n: number, mayCancel: boolean) => LoadRequest,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let next = from;
  let open = 0;
  const pump = (session: ClientHttp2Session, pace: { cancelledMs: number }): void => {
    // A closed connection accepts no more: its requests would fail at once, and then all others too.
    if (next >= to || session.closed) return open === 0 ? resolve() : undefined;
    const n = next++;
    const startedMs = performance.now();
    const request = requestOf(n, startedMs - pace.cancelledMs >= CANCEL_EVERY_MS);
    if (request.cancelledAt) pace.cancelledMs = startedMs;
    open += 1;
    ask(session, request, (ended) => {
      open -= 1;
      ledger.end(n, ended, performance.now() - startedMs);
      pump(session, pace);
    });
  };
  const watch = watchStall(() => ledger.ended, resolve);
  for (const session of sessions) {
    const pace = { cancelledMs: 0 };
    for (let i = 0; i < streams; i += 1) pump(session, pace);
  }
  await promise;
  clearInterval(watch);
}

function watchStall(count: () => number, onStall: () => void): NodeJS.Timeout {
  let before = count();
  let movedMs = performance.now();
  return setInterval(() => {
    if (count() !== before) movedMs = performance.now();
    else if (performance.now() - movedMs >= STALLED_MS) onStall();
    before = count();
  }, LOOK_MS);
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/status`);
}

/** Resident memory after the nth garbage collection. */
async function collect(proxy: SpawnedSallyport, nth: number): Promise<number> {
  proxy.process.kill('SIGUSR2');
  await proxy.process.record(({ msg, collections }) => msg === 'collected' && collections === nth);
  return proxy.process.usage().residentBytes;
}

// The state of the process as groups of texts, at one moment.
import type { ShownGroup, ShownRow } from '../../admin/page/page-target.ts';
import type { Reloads } from '../../admin/target.ts';
import { formatBytes } from '../../base/html/visible-text.ts';
import type { LogSink } from '../../base/log.ts';
import type { ReadDurations } from '../../base/metrics/counts.ts';
import { toSnakeCase } from '../../base/variable-overlay.ts';
import { callResults } from '../../callback/callback-counters.ts';
import { Total } from '../../proxy/counters.ts';
import { expiryWarning } from '../../tls/authority-rotation.ts';
import type { CertificateAuthority } from '../../tls/certificate-authority.ts';
import type { EventLoopDelay } from '../metrics/event-loop-delay.ts';
import type { RecordOutlets } from '../records/record-outlets.ts';
import type { Entry, Sandboxes } from '../sandboxes/sandboxes.ts';

export type StateParts = {
  readonly reloads: Reloads;
  readonly sink: Pick<LogSink, 'isBlocked' | 'dropped' | 'waiting'>;
  readonly outlets: Pick<RecordOutlets, 'counts' | 'forwarding' | 'live'>;
  readonly delay: Pick<EventLoopDelay, 'read'>;
};

export function stateGroups(sandboxes: Sandboxes, parts: StateParts): readonly ShownGroup[] {
  return [
    healthOf(sandboxes, parts),
    recordsOf(parts),
    processGroup(parts),
    connectionsOf(sandboxes),
    callbacksOf(sandboxes),
    sandboxesOf(sandboxes),
    ...limitsOf(sandboxes),
  ];
}

function healthOf(sandboxes: Sandboxes, { reloads }: StateParts): ShownGroup {
  const authority = describeAuthority(sandboxes.shared.ca, Date.now());
  const isReady = sandboxes.main.own.isReady();
  const problems = [
    ...(authority.problem === undefined ? [] : [authority.problem]),
    ...(isReady
      ? []
      : ['The proxy is not ready: it ends, or require_config is set and no rules are in force.']),
    ...(reloads.isCurrent
      ? []
      : ['The last reload failed: what was active before still is. The log says why.']),
  ];
  return {
    title: 'Health',
    rows: [
      ['Ready', isReady ? 'yes' : 'no'],
      ['Reloads', `${reloads.done} done, ${reloads.failed} failed`],
      ...authority.rows,
    ],
    ...(problems.length > 0 && { problem: problems.join(' ') }),
  };
}

type ShownAuthority = { readonly rows: readonly ShownRow[]; readonly problem?: string };

/** In the overlap of a rotation there is nothing to do: the CA that follows is there. */
export function describeAuthority(ca: CertificateAuthority, nowMs: number): ShownAuthority {
  const { fingerprintSha256: fingerprint, notAfter, own = [] } = ca;
  const last = own.at(-1)?.fingerprintSha256 ?? fingerprint;
  const isFollowed = last !== fingerprint;
  const warning = isFollowed ? undefined : expiryWarning(notAfter, nowMs);
  return {
    rows: [
      ['CA fingerprint', fingerprint],
      ['CA ends', notAfter.toISOString().slice(0, 10)],
      ...(isFollowed ? [['Next CA fingerprint', last] as const] : []),
    ],
    ...(warning !== undefined && { problem: `${warning.replace(/^t/, 'T')}.` }),
  };
}

function recordsOf({ sink, outlets: { counts, forwarding, live } }: StateParts): ShownGroup {
  const { isBlocked } = sink;
  return {
    title: 'Records',
    rows: [
      ['Since the start', count(counts.emitted)],
      ['Dropped', count(counts.dropped)],
      ['Wait for the platform', count(forwarding.waiting)],
      ['Lost on the way to the platform', count(forwarding.lost)],
      ['Wait for the log', `${count(sink.waiting?.chars ?? 0)} characters`],
      ['Log lines lost', count(sink.dropped)],
      ['Readers', count(live.followers)],
      ['Log', isBlocked ? 'blocked' : 'written'],
    ],
    ...(isBlocked && { problem: 'Records cannot be written: check the reader of the output.' }),
  };
}

function processGroup({ delay }: StateParts): ShownGroup {
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    title: 'Process',
    rows: [
      ['Up', formatSeconds(process.uptime())],
      [
        'Memory',
        `${formatBytes(rss)} resident, ${formatBytes(heapUsed)} heap, ${formatBytes(external)} buffers`,
      ],
      ['Event loop delay', describeDelay(delay.read())],
      ['Process id', String(process.pid)],
      ['Node', process.versions.node],
    ],
  };
}

/** The page begins the sampling, so that no process is woken for a page that nobody asks for. */
function describeDelay({ bounds, buckets, count: samples, sum }: ReadDurations): string {
  if (samples === 0) return 'measured from now on: reload';
  const at = buckets.findIndex((within) => within >= samples * 0.99);
  const bound = at < 0 ? `above ${(bounds.at(-1) ?? 0) * 1000} ms` : `within ${(bounds[at] ?? 0) * 1000} ms`;
  return `${((sum / samples) * 1000).toFixed(1)} ms on average, 99 % ${bound}, ${count(samples)} samples`;
}

function connectionsOf({ shared }: Sandboxes): ShownGroup {
  const { budget, upstreamQuota, idleQuota, counters } = shared;
  return {
    title: 'Connections',
    rows: [
      ['Clients', `${count(budget.open)} of ${count(budget.max)}`],
      ['Upstreams', `${count(upstreamQuota.taken)} of ${count(upstreamQuota.max)}`],
      ['Idle upstreams', count(idleQuota.taken)],
      ['Upstreams reused', count(counters.totals[Total.reusedUpstreams] ?? 0)],
      ['Leaf certificates', count(counters.totals[Total.leavesIssued] ?? 0)],
    ],
  };
}

function callbacksOf(sandboxes: Sandboxes): ShownGroup {
  const { cacheHits, cacheMisses, calls } = sandboxes.shared.counters.callbacks;
  const cached = sandboxes.all().reduce((sum, { sandbox }) => sum + sandbox.context.callbacks.cached, 0);
  const rows = calls.rows();
  const results = callResults.map((result, at) => {
    const sum = rows.reduce((all, { values }) => all + (values[at] ?? 0), 0);
    return `${count(sum)} ${result}`;
  });
  return {
    title: 'Callbacks',
    rows: [
      ['Cached responses', count(cached)],
      ['Cache hits', count(cacheHits)],
      ['Cache misses', count(cacheMisses)],
      ['Calls', results.join(', ')],
    ],
  };
}

const MAX_SANDBOXES = 100;

function sandboxesOf(sandboxes: Sandboxes): ShownGroup {
  const all = sandboxes.all();
  const rest = all.length - MAX_SANDBOXES;
  const rows: ShownRow[] = all.slice(0, MAX_SANDBOXES).map((entry) => [entry.state.id, describe(entry)]);
  return {
    title: 'Sandboxes',
    rows: rest > 0 ? [...rows, ['More', `${rest}, which GET /v1/sandboxes lists`]] : rows,
  };
}

function describe({ active, sandbox, failure }: Entry): string {
  if (failure !== undefined) return `failed: ${failure}`;
  const { size } = sandbox.context.clients;
  return `revision ${active.revision}, ${count(size)} ${size === 1 ? 'connection' : 'connections'}`;
}

/** As the config names them. */
function limitsOf({ shared }: Sandboxes): readonly ShownGroup[] {
  const { limits, timeouts } = shared.config;
  return [
    { title: 'Limits', rows: Object.entries(limits).map(([key, value]) => [toSnakeCase(key), count(value)]) },
    {
      title: 'Timeouts',
      rows: Object.entries(timeouts).map(([key, ms]) => [toSnakeCase(key), formatSeconds(ms / 1000)]),
    },
  ];
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds * 10) / 10} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

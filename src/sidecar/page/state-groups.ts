// The state of the process as groups of texts, at one moment.
import type { ShownGroup, ShownRow } from '../../admin/page/page-target.ts';
import type { Reloads } from '../../admin/target.ts';
import { formatBytes } from '../../base/html/visible-text.ts';
import type { LogSink } from '../../base/log.ts';
import { toSnakeCase } from '../../base/variable-overlay.ts';
import type { RecordOutlets } from '../records/record-outlets.ts';
import type { Entry, Sandboxes } from '../sandboxes/sandboxes.ts';

export type StateParts = {
  readonly reloads: Reloads;
  readonly sink: Pick<LogSink, 'isBlocked' | 'dropped'>;
  readonly outlets: Pick<RecordOutlets, 'counts'>;
};

export function stateGroups(sandboxes: Sandboxes, parts: StateParts): readonly ShownGroup[] {
  return [
    healthOf(sandboxes, parts),
    recordsOf(parts),
    processGroup(),
    sandboxesOf(sandboxes),
    ...limitsOf(sandboxes),
  ];
}

function healthOf(sandboxes: Sandboxes, { reloads }: StateParts): ShownGroup {
  const { ca } = sandboxes.shared;
  const isReady = sandboxes.main.own.isReady();
  const problems = [
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
      ['CA fingerprint', ca.fingerprintSha256],
    ],
    ...(problems.length > 0 && { problem: problems.join(' ') }),
  };
}

function recordsOf({ sink, outlets: { counts } }: StateParts): ShownGroup {
  const { isBlocked } = sink;
  return {
    title: 'Records',
    rows: [
      ['Since the start', count(counts.emitted)],
      ['Dropped', count(counts.dropped)],
      ['Log lines lost', count(sink.dropped)],
      ['Log', isBlocked ? 'blocked' : 'written'],
    ],
    ...(isBlocked && { problem: 'Records cannot be written: check the reader of the output.' }),
  };
}

function processGroup(): ShownGroup {
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    title: 'Process',
    rows: [
      ['Up', formatSeconds(process.uptime())],
      [
        'Memory',
        `${formatBytes(rss)} resident, ${formatBytes(heapUsed)} heap, ${formatBytes(external)} buffers`,
      ],
      ['Process id', String(process.pid)],
      ['Node', process.versions.node],
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

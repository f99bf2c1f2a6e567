// What the metrics are read from: the counters of the process, and what its parts hold at the moment of a reading.
import type { Reloads } from '../../admin/target.ts';
import type { LogSink } from '../../base/log.ts';
import type { ProxyCounters } from '../../proxy/counters.ts';
import type { RecordOutlets } from '../records/record-outlets.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { EventLoopDelay } from './event-loop-delay.ts';

/** Of connections: how many are open, and how many may be. */
type Share = { readonly open: number; readonly max: number };

export type MetricSource = {
  readonly counters: ProxyCounters;
  readonly reloads: Reloads;
  readonly outlets: Pick<RecordOutlets, 'counts' | 'forwarding' | 'live'>;
  readonly sink: Pick<LogSink, 'isBlocked' | 'dropped' | 'waiting'>;
  readonly delay: Pick<EventLoopDelay, 'read'>;
  readonly version: string;
  isReady(): boolean;
  /** When the CA that signs ends: another one may follow it at any time. */
  caEnd(): Date;
  clients(): Share;
  upstreams(): Share;
  idleUpstreams(): number;
  sandboxes(): number;
  /** Outcomes of callbacks in the caches of all sandboxes. */
  cachedCallbacks(): number;
};

export type SourceParts = Pick<MetricSource, 'reloads' | 'outlets' | 'sink' | 'delay' | 'version'>;

export function createMetricSource(sandboxes: Sandboxes, parts: SourceParts): MetricSource {
  const { counters, budget, upstreamQuota, idleQuota, ca } = sandboxes.shared;
  return {
    ...parts,
    counters,
    isReady: () => sandboxes.main.own.isReady(),
    caEnd: () => ca.notAfter,
    clients: () => ({ open: budget.open, max: budget.max }),
    upstreams: () => ({ open: upstreamQuota.taken, max: upstreamQuota.max }),
    idleUpstreams: () => idleQuota.taken,
    sandboxes: () => sandboxes.all().length,
    cachedCallbacks: () =>
      sandboxes.all().reduce((sum, { sandbox }) => sum + sandbox.context.callbacks.cached, 0),
  };
}

// The metrics of the data path: requests, callbacks, upstreams, tunnels and bytes. Labels are bounded: closed lists, and names of rules
// and callbacks up to a limit; never a host, a path, an address or a value.
import type { NamedRow } from '../../base/metrics/counts.ts';
import { callResults } from '../../callback/callback-counters.ts';
import { Total, dialResults, failureReasons, protocols, refusalCodes } from '../../proxy/counters.ts';
import { outcomes } from '../../proxy/record.ts';
import { counter, gauge, histogram, labelled, type MetricDefinition } from './metric-definition.ts';
import type { MetricSource } from './metric-source.ts';

const total =
  (at: Total) =>
  ({ counters }: MetricSource): number =>
    counters.totals[at] ?? 0;

const requests: readonly MetricDefinition[] = [
  labelled(
    'counter',
    'sallyport_requests_total',
    ['outcome', 'protocol'],
    'Requests, tunnels and refusals that have ended: one for each record',
    ({ counters }) =>
      outcomes.flatMap((outcome, row) =>
        protocols.map(
          (protocol, column) =>
            [outcome, protocol, counters.requests[row * protocols.length + column] ?? 0] as const,
        ),
      ),
  ),
  labelled(
    'counter',
    'sallyport_rule_requests_total',
    ['rule', 'outcome'],
    'Requests to which a rule applied; after 256 names the others are counted as other',
    ({ counters }) => byName(counters.rules.rows(), outcomes),
  ),
  labelled(
    'counter',
    'sallyport_callback_requests_total',
    ['callback', 'outcome'],
    'Requests to which a callback applied; after 256 names the others are counted as other',
    ({ counters }) => byName(counters.callbackRequests.rows(), outcomes),
  ),
  labelled(
    'counter',
    'sallyport_refusals_total',
    ['code'],
    'Requests that were refused or failed with a code of the error catalogue',
    ({ counters }) => refusalCodes.map((code, at) => [code, counters.refusals[at] ?? 0] as const),
  ),
  labelled(
    'counter',
    'sallyport_failures_total',
    ['reason'],
    'Requests and tunnels that failed for another reason, most often because one side left',
    ({ counters }) => failureReasons.map((reason, at) => [reason, counters.failures[at] ?? 0] as const),
  ),
  counter(
    'sallyport_injections_total',
    'Requests that were sent with the headers of a rule or a callback',
    total(Total.injections),
  ),
  histogram(
    'sallyport_request_duration_seconds',
    [],
    'Of requests whose whole response came from an upstream, from the head of the request on',
    ({ counters }) => [counters.requestSeconds.read()],
  ),
  labelled(
    'counter',
    'sallyport_transferred_bytes_total',
    ['direction'],
    'Bytes of requests and tunnels that have ended: up is to the upstream, down to the client',
    (source) => [
      ['up', total(Total.bytesUp)(source)],
      ['down', total(Total.bytesDown)(source)],
    ],
  ),
];

const callbacks: readonly MetricDefinition[] = [
  labelled(
    'counter',
    'sallyport_callback_calls_total',
    ['callback', 'result'],
    'Calls of callback endpoints; rejected: none was made, because 64 were running. After 64 names other',
    ({ counters }) => byName(counters.callbacks.calls.rows(), callResults),
  ),
  histogram(
    'sallyport_callback_duration_seconds',
    ['callback'],
    'Of calls of callback endpoints, failed ones too; after 64 names other',
    ({ counters }) =>
      counters.callbacks.seconds
        .rows()
        .map(({ name: callback, ...read }) => ({ labels: { callback }, ...read })),
  ),
  counter(
    'sallyport_callback_cache_hits_total',
    'Requests that got the cached response of a callback',
    ({ counters }) => counters.callbacks.cacheHits,
  ),
  counter(
    'sallyport_callback_cache_misses_total',
    'Requests that waited for a call of a callback, their own or one that was running',
    ({ counters }) => counters.callbacks.cacheMisses,
  ),
  gauge('sallyport_callback_cache_entries', 'Responses of callbacks in all caches', (source) =>
    source.cachedCallbacks(),
  ),
];

const connections: readonly MetricDefinition[] = [
  gauge('sallyport_client_connections', 'Open connections of clients', (source) => source.clients().open),
  gauge(
    'sallyport_client_connections_limit',
    'Connections of clients that the process may have, by its file descriptors',
    (source) => source.clients().max,
  ),
  gauge(
    'sallyport_upstream_connections',
    'Connections to upstreams, those that are being made and idle ones too',
    (source) => source.upstreams().open,
  ),
  gauge(
    'sallyport_upstream_connections_limit',
    'Connections to upstreams that the process may have, by its file descriptors',
    (source) => source.upstreams().max,
  ),
  gauge('sallyport_upstream_idle_connections', 'Connections to upstreams that wait for a request', (source) =>
    source.idleUpstreams(),
  ),
  labelled(
    'counter',
    'sallyport_upstream_connects_total',
    ['result'],
    'Connections to upstreams that were begun; aborted: nobody waited for them any more',
    ({ counters }) => dialResults.map((result, at) => [result, counters.dials[at] ?? 0] as const),
  ),
  histogram(
    'sallyport_upstream_connect_duration_seconds',
    [],
    'Of connections to upstreams that were established, with their TLS handshake',
    ({ counters }) => [counters.dialSeconds.read()],
  ),
  labelled(
    'counter',
    'sallyport_upstream_handshakes_total',
    ['session'],
    'TLS handshakes with upstreams; resumed ones cost less',
    (source) => [
      ['full', total(Total.fullHandshakes)(source)],
      ['resumed', total(Total.resumedHandshakes)(source)],
    ],
  ),
  labelled(
    'counter',
    'sallyport_upstream_requests_total',
    ['connection'],
    'Requests that got a connection to an upstream: a new one, or one that had served a request',
    (source) => [
      ['new', total(Total.newUpstreams)(source)],
      ['reused', total(Total.reusedUpstreams)(source)],
    ],
  ),
  labelled(
    'gauge',
    'sallyport_tunnels_open',
    ['kind'],
    'Connections that are relayed unread: connect is a tunnel, upgrade what follows a 101',
    (source) => [
      ['connect', total(Total.tunnelsOpened)(source) - total(Total.tunnelsEnded)(source)],
      ['upgrade', total(Total.upgradesOpened)(source) - total(Total.upgradesEnded)(source)],
    ],
  ),
  labelled('counter', 'sallyport_tunnels_total', ['kind'], 'The same, that were opened', (source) => [
    ['connect', total(Total.tunnelsOpened)(source)],
    ['upgrade', total(Total.upgradesOpened)(source)],
  ]),
  counter(
    'sallyport_leaf_certificates_total',
    'Certificates that were issued for intercepted hosts',
    total(Total.leavesIssued),
  ),
];

export const proxyMetrics: readonly MetricDefinition[] = [...requests, ...callbacks, ...connections];

/** Rows with a name, a label for each column that is not 0, and its value. */
function byName(
  rows: readonly NamedRow[],
  columns: readonly string[],
): readonly (readonly [string, string, number])[] {
  return rows.flatMap(({ name, values }) =>
    columns.flatMap((column, at) => {
      const value = values[at] ?? 0;
      return value === 0 ? [] : [[name, column, value] as const];
    }),
  );
}

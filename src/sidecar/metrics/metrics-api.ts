// Serves /metrics. Loaded with the first connection; what formats, with the first reading. Whoever may read it learns names of rules
// and numbers, and can change nothing.
import type { Duplex } from 'node:stream';
import { createAccessGuard, tokenRequired } from '../../admin/access-guard.ts';
import { adminError, type AdminResponse } from '../../admin/admin-errors.ts';
import type { HttpResponse } from '../../base/http/http-response.ts';
import { HttpServer } from '../../base/http/http-server.ts';
import type { RequestHead } from '../../base/http/request-head.ts';
import type { Log } from '../../base/log.ts';
import { RateLimit } from '../../base/rate-limit.ts';
import type { Secret } from '../../base/secret.ts';
import type { MetricSource } from './metric-source.ts';
import { sidecarMetrics } from './process-metrics.ts';

export type MetricsAccess = {
  /** Undefined: everybody who reaches the listener may read. */
  readonly token: Secret | undefined;
  /** Names that Host may hold besides those of loopback and addresses. */
  readonly hosts: readonly string[];
  /** Called with each connection that has shown the token. */
  onAuthenticated(socket: Duplex): void;
};

export type MetricsApi = ReturnType<typeof createMetricsApi>;

const LIMITS = { headBytes: 16 * 1024, headMs: 5000, requestMs: 5000, keepAliveMs: 60_000 };
/** Of all readers. A reading costs about a millisecond of the event loop that serves the proxy. */
const READINGS_PER_SECOND = 50;
const WRONG_TOKENS_PER_MINUTE = 5;

export function createMetricsApi(source: MetricSource, access: MetricsAccess, log: Log) {
  const { token, hosts } = access;
  const now = (): number => performance.now();
  const wrongTokens = new RateLimit(WRONG_TOKENS_PER_MINUTE, 60_000, now);
  const guard = createAccessGuard({ token, hosts, wrongTokens, allowsAddresses: true });
  const readings = new RateLimit(READINGS_PER_SECOND, 1000, now);
  const server = new HttpServer({
    limits: LIMITS,
    log,
    async handle({ head, body, socket }) {
      const { token: shown, rejection } = guard.check(head);
      if (shown === 'right') access.onAuthenticated(socket);
      const isMissing = token !== undefined && shown !== 'right';
      const rejected = rejection ?? (isMissing ? tokenRequired : rejectRequest(head));
      const response = rejected ?? (await read(source, readings));
      return { ...response, isLast: !head.isOriginForm || !body.isComplete };
    },
    reject: (kind) => adminError(kind),
  });
  return {
    serve: server.serveAccepted(),
    isBusy: (socket: Duplex) => server.isBusy(socket),
    close: (): Promise<void> => server.close(0, 'end'),
  };
}

function rejectRequest(head: RequestHead): AdminResponse | undefined {
  if (head.target.replace(/\?.*$/s, '') !== '/metrics')
    return adminError('no_route', { detail: 'There is no such path: the metrics are at /metrics' });
  if (head.method === 'GET' || head.method === 'HEAD') return undefined;
  return adminError('method', { detail: 'Metrics are only read: use GET', fields: { Allow: 'GET, HEAD' } });
}

async function read(source: MetricSource, readings: RateLimit): Promise<HttpResponse> {
  const waitMs = readings.take();
  if (waitMs > 0)
    return adminError('busy', { detail: 'The metrics are read too often: read them less often', waitMs });
  // All of them in one turn of the event loop, so that they agree.
  const families = sidecarMetrics.map(({ name, help, type, read: samplesOf }) => ({
    ...{ name, help, type, samples: samplesOf(source) },
  }));
  const { formatMetrics, metricsContentType } = await import('../../base/metrics/prometheus.ts');
  return {
    status: 200,
    fields: { 'Content-Type': metricsContentType },
    body: await formatMetrics(families),
  };
}

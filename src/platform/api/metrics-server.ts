// The metrics and the readiness of a process, on a listener of their own: they are about every organization, and for the
// operator alone. A process that only runs jobs has no other listener.
import type { HttpResponse } from '../../base/http/http-response.ts';
import { HttpServer } from '../../base/http/http-server.ts';
import type { ListenAddress } from '../../base/listen-address.ts';
import { describeBug, type Log } from '../../base/log.ts';
import { platformError } from './errors.ts';
import type { ProcessMetrics } from './metrics.ts';
import { listenAt } from './server.ts';

export type MetricsServer = { readonly url: string; close(): Promise<void> };

const LIMITS = { headBytes: 16 * 1024, headMs: 5000, requestMs: 5000, keepAliveMs: 5000 };
const MAX_CONNECTIONS = 16;

type Source = Pick<ProcessMetrics, 'contentType' | 'read'> & {
  /** False until the process has started, and once it shuts down. */
  isReady(): boolean;
};

/** That of the API; a runner has another one. */
const OWN = { setting: 'metrics_listen or SALLYPORT_PLATFORM_METRICS_LISTEN' };

/** Throws an Error that says where it cannot listen, and which setting names that. */
export async function openMetricsServer(
  source: Source,
  listen: ListenAddress,
  log: Log,
  { setting }: { readonly setting: string } = OWN,
): Promise<MetricsServer> {
  const server = new HttpServer({
    limits: LIMITS,
    log,
    async handle({ head }) {
      if (head.target === '/metrics') return read(source, log);
      if (head.target === '/ok') return readinessOf(source);
      return platformError(
        'no_route',
        'There is no such path: the metrics are at /metrics, the readiness is at /ok',
      );
    },
    reject: (kind) => platformError(kind),
  });
  server.listener.maxConnections = MAX_CONNECTIONS;
  return {
    url: await listenAt(server.listener, listen, setting),
    close: () => server.close(0, 'end'),
  };
}

function readinessOf({ isReady }: Source): HttpResponse {
  if (!isReady()) return platformError('unavailable', 'This process is starting or shutting down');
  return { status: 200, fields: { 'Content-Type': 'application/json' }, body: '{"ok":true}' };
}

async function read({ read, contentType }: Pick<ProcessMetrics, 'contentType' | 'read'>, log: Log) {
  try {
    return { status: 200, fields: { 'Content-Type': contentType }, body: await read() };
  } catch (error) {
    log.error(describeBug(error), 'metrics failed');
    return platformError('unavailable', 'The metrics are temporarily unavailable: try again');
  }
}

// The metrics on a listener of their own: they are about every organization, and for the operator alone.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ListenAddress, listenerUrl } from '../../base/listen-address.ts';
import { describeBug, type Log } from '../../base/log.ts';
import type { Metrics } from './metrics.ts';
import { listenAt } from './server.ts';

export type MetricsServer = { readonly url: string; close(): Promise<void> };

/** Throws an Error that says where it cannot listen. */
export async function openMetricsServer(
  metrics: Pick<Metrics, 'contentType' | 'read'>,
  listen: ListenAddress,
  log: Log,
): Promise<MetricsServer> {
  const server = createServer({ headersTimeout: 5000, requestTimeout: 5000 }, (incoming, outgoing) => {
    const response = (status: number, type: string, text: string): void => {
      outgoing.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text);
    };
    if (incoming.url !== '/metrics') return response(404, 'text/plain', 'Not found. See /metrics.\n');
    metrics.read().then(
      (text) => response(200, metrics.contentType, text),
      (error: unknown) => {
        log.error(describeBug(error), 'metrics failed');
        response(503, 'text/plain', 'The metrics are temporarily unavailable.\n');
      },
    );
  });
  server.maxConnections = 16;
  await listenAt(server, listen, 'metrics_listen or SALLYPORT_PLATFORM_METRICS_LISTEN');
  server.on('error', (error: NodeJS.ErrnoException) => log.warn({ error: error.code }, 'metrics listener'));
  const { address, port } = server.address() as AddressInfo;
  return {
    url: listenerUrl({ address, port }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

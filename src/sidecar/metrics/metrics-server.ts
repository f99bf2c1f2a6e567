// The listener of the metrics. What serves its connections is loaded with the first of them, so that the start does not wait for it.
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ConnectionTable } from '../../admin/connection-table.ts';
import { listenAt } from '../../admin/listening.ts';
import { readInput } from '../../base/input-error.ts';
import { describeBug } from '../../base/log.ts';
import { Secret } from '../../base/secret.ts';
import { readTokenFile } from '../access-tokens.ts';
import type { Config } from '../config.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SourceParts } from './metric-source.ts';
import type { MetricsAccess, MetricsApi } from './metrics-api.ts';

export type MetricsServer = Awaited<ReturnType<typeof createMetricsServer>>;

/** The oldest one without the token gives way: who shares the loopback of the listener must not keep its readers out. */
const LIMITS = { connections: 24, unauthenticated: 16 };
const WORDS = {
  what: 'the listener of the metrics',
  setting: 'change metrics.listen or SALLYPORT_METRICS_LISTEN',
};

/** Throws an Error that says which setting to change when it cannot listen. */
export async function createMetricsServer(sandboxes: Sandboxes, parts: Omit<SourceParts, 'delay'>) {
  const { config, listeners, log } = sandboxes.shared;
  const { listen, hosts } = config.metrics;
  if (listen === 'off') throw new Error('metrics.listen is off');
  const token = await readInput(() => readMetricsToken(config));
  let loaded: Loaded | undefined;
  let loading: Promise<Loaded> | undefined;
  const connections = new ConnectionTable(LIMITS, (socket) => loaded?.api.isBusy(socket) === true);

  async function accept(raw: Socket): Promise<void> {
    const socket = connections.add(raw);
    // A client that leaves before there is another listener.
    socket?.on('error', () => socket.destroy());
    if (socket === undefined) return;
    const onAuthenticated = (one: Duplex): void => connections.authenticate(one);
    loading ??= load(sandboxes, parts, { token, hosts, onAuthenticated }).catch((error: unknown) => {
      // The next connection tries again: there may have been no free file descriptor.
      loading = undefined;
      throw error;
    });
    loaded ??= await loading;
    if (!socket.destroyed) loaded.api.serve(socket);
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
    accept(raw).catch((error: unknown) => {
      log.error(describeBug(error), 'the metrics cannot be loaded');
      raw.destroy();
    });
  });
  // Before it is open: an address that was vetted a moment earlier may be dialled a moment later.
  if ('port' in listen && listen.port !== 0) listeners.metrics = { address: listen.host, port: listen.port };
  const at = await listenAt(listener, listen, WORDS);
  if (!('path' in listen)) listeners.metrics = at;
  listener.on('error', ({ code }: NodeJS.ErrnoException) =>
    log.warn({ error: code }, 'listener of the metrics'),
  );
  return {
    ...at,
    async close(): Promise<void> {
      const closed = new Promise<void>((done) => listener.close(() => done()));
      await (await loading?.catch(() => undefined))?.close();
      await closed;
    },
  };
}

type Loaded = { readonly api: MetricsApi; close(): Promise<void> };

async function load(
  sandboxes: Sandboxes,
  parts: Omit<SourceParts, 'delay'>,
  access: MetricsAccess,
): Promise<Loaded> {
  const [{ createMetricsApi }, { createMetricSource }, { createEventLoopDelay }] = await Promise.all([
    import('./metrics-api.ts'),
    import('./metric-source.ts'),
    import('./event-loop-delay.ts'),
  ]);
  const delay = createEventLoopDelay();
  const api = createMetricsApi(
    createMetricSource(sandboxes, { ...parts, delay }),
    access,
    sandboxes.shared.log,
  );
  return {
    api,
    async close() {
      delay[Symbol.dispose]();
      await api.close();
    },
  };
}

function readMetricsToken({ metrics: { tokenFile } }: Config): Secret | undefined {
  return tokenFile === undefined ? undefined : new Secret(readTokenFile(tokenFile, 'token of the metrics'));
}

// The listener of the admin API. What serves its connections, and node:http with it, is loaded with the first of them, so
// that the start does not wait for it.
import { createServer, type Socket } from 'node:net';
import { describeBug } from '../base/log.ts';
import type { AdminApi, AdminApiLimits, AdminApiOptions } from './admin-api.ts';
import { type ConnectionLimits, ConnectionTable } from './connection-table.ts';
import { type AdminListen, listenAt } from './listening.ts';
import type { AdminTarget } from './target.ts';

export type AdminServer = Awaited<ReturnType<typeof createAdminServer>>;

export type AdminServerOptions = AdminApiOptions & {
  readonly listen: AdminListen;
  /** Called once, with the first connection. */
  loadTarget(): AdminTarget | Promise<AdminTarget>;
  readonly limits?: Partial<AdminLimits>;
};

type AdminLimits = AdminApiLimits & ConnectionLimits;

const DEFAULTS: AdminLimits = {
  connections: 64,
  unauthenticated: 16,
  headBytes: 16 * 1024,
  bodyBytes: 1024 * 1024,
  requestMs: 10_000,
  keepAliveMs: 5000,
  writesInAll: 24,
  writesAtOnce: 8,
  writesPerSecond: 100,
  stallMs: 30_000,
  wrongTokensPerMinute: 5,
  readers: 8,
  unauthenticatedRecordsPerSecond: 10,
};

/** Throws an Error that says which setting to change when it cannot listen. */
export async function createAdminServer(options: AdminServerOptions) {
  const limits = { ...DEFAULTS, ...options.limits };
  let api: AdminApi | undefined;
  const connections = new ConnectionTable(limits, (socket) => api?.isBusy(socket) === true);
  const load = async (): Promise<AdminApi> => {
    const [{ createAdminApi }, target] = await Promise.all([import('./admin-api.ts'), options.loadTarget()]);
    return createAdminApi(target, options, limits, (socket) => connections.authenticate(socket));
  };
  let loading: Promise<AdminApi> | undefined;

  async function accept(raw: Socket): Promise<void> {
    const socket = connections.add(raw);
    // A client that leaves before there is another listener.
    socket?.on('error', () => socket.destroy());
    if (socket === undefined) return;
    loading ??= load().catch((error: unknown) => {
      // The next connection tries again: there may have been no free file descriptor.
      loading = undefined;
      throw error;
    });
    api ??= await loading;
    if (!socket.destroyed) api.serve(socket);
  }

  // As node:http does: a client may end its side before it reads the response.
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
    accept(raw).catch((error: unknown) => {
      options.log.error(describeBug(error), 'the admin API cannot be loaded');
      raw.destroy();
    });
  });
  const at = await listenAt(listener, options.listen);
  // For example when no file descriptor is left for a connection: open connections go on.
  listener.on('error', ({ code }: NodeJS.ErrnoException) => options.log.warn({ error: code }, 'listener'));
  return {
    ...at,
    /** Stops accepting; lets running requests end, at most for `drainMs`. */
    async close(drainMs: number): Promise<void> {
      const closed = new Promise<void>((done) => listener.close(() => done()));
      await (await loading?.catch(() => undefined))?.close(drainMs);
      await closed;
    },
    /** After `close`: every request that was accepted has left its record. It waits for the target without a limit. */
    settled: async (): Promise<void> => api?.settled(),
  };
}

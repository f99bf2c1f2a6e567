// Streaming routes behind a listener: anybody may call them. Without a database, unless one is given.
import { createLog } from '../../../../src/base/log.ts';
import { anyone } from '../../../../src/platform/api/access.ts';
import { noProxies } from '../../../../src/platform/api/client-address.ts';
import type { ServerEvent } from '../../../../src/platform/api/stream/event-stream.ts';
import { defaultLimits, type ServerLimits } from '../../../../src/platform/api/limits.ts';
import { createApi } from '../../../../src/platform/api/pipeline.ts';
import { byteStream, eventStream } from '../../../../src/platform/api/responses.ts';
import { defineRoute, type Route, type Streaming } from '../../../../src/platform/api/route.ts';
import { openServer, type Server } from '../../../../src/platform/api/server.ts';
import { createAuthenticator } from '../../../../src/platform/identity/authentication.ts';
import { openDatabase, type Store } from '../../../../src/platform/store/database.ts';
import { onePool } from '../../../support/platform-database.ts';
import { WireClient } from '../../../support/wire-client.ts';

const shared = {
  method: 'GET',
  tag: 'Test',
  access: anyone,
  tracking: { untracked: 'a test' },
} as const;

/** `GET /events` */
export function eventsRoute(
  produce: (call: Streaming) => AsyncIterable<ServerEvent>,
  traits: Parameters<typeof eventStream>[0] = {},
): Route {
  return defineRoute({
    ...shared,
    path: '/events',
    summary: 'events',
    responses: { 200: eventStream(traits) },
    handle: async () => ({}),
    stream: produce,
  });
}

/** `GET /bytes` */
export function bytesRoute(
  produce: (call: Streaming) => AsyncIterable<Uint8Array>,
  silenceMs?: number,
): Route {
  return defineRoute({
    ...shared,
    path: '/bytes',
    summary: 'bytes',
    responses: { 200: byteStream('application/x-ndjson', silenceMs === undefined ? {} : { silenceMs }) },
    handle: async () => ({}),
    stream: produce,
  });
}

export type StreamScene = AsyncDisposable & {
  readonly server: Server;
  readonly port: number;
  /** The lines of the log so far. */
  readonly lines: readonly string[];
  connect(): Promise<WireClient>;
};

export async function openStreams(
  routes: readonly Route[],
  limits: Partial<ServerLimits> = {},
  database?: Store,
): Promise<StreamScene> {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const connection = { host: '/nonexistent', user: 'a', database: 'a' };
  const store = openDatabase({ connection, maxConnections: 1, onError: () => undefined });
  const authenticator = createAuthenticator({ now: () => Date.now() });
  const server = await openServer({
    api: createApi(routes, {
      pools: onePool(database ?? store),
      authenticator,
      log,
      limits: { ...defaultLimits, bodyBytes: 1024 },
    }),
    listen: { host: '127.0.0.1', port: 0 },
    limits: { ...defaultLimits, drainMs: 5000, ...limits },
    trustedProxies: noProxies,
    log,
    onFinished: () => undefined,
  });
  const port = Number(new URL(server.url).port);
  return {
    ...{ server, port, lines },
    connect: () => WireClient.connect(port),
    async [Symbol.asyncDispose]() {
      await server.close();
      await store.close();
    },
  };
}

export function get(path: string, ...fields: readonly string[]): string {
  return [`GET ${path} HTTP/1.1`, 'Host: platform.test', ...fields, '', ''].join('\r\n');
}

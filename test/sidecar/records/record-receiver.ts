// A test server in place of the platform. It stores records as the platform does: by source and number, once each. Each
// test chooses its reaction to a batch: it can stall, respond with an error, disconnect, or be another server.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export type SentRecord = Readonly<Record<string, unknown>> & { readonly number: number };

export type SentBatch = {
  readonly source: string;
  readonly records: readonly SentRecord[];
  readonly token: string;
  readonly path: string;
  readonly body: string;
};

export type Reaction =
  | 'store'
  /** Stores the batch, then closes the connection without a response. */
  | 'store and disconnect'
  | 'disconnect'
  /** Stores and responds when `release` is called. */
  | 'stall'
  /** Responds with 200 and a web page, and stores nothing. */
  | 'other server'
  | { readonly status: number; readonly fields?: Readonly<Record<string, string>> };

export type RecordReceiver = AsyncDisposable & {
  readonly url: string;
  readonly batches: readonly SentBatch[];
  /** The stored records, in the order of arrival. */
  readonly stored: readonly SentRecord[];
  /** The highest number of concurrent requests. */
  readonly maxConcurrent: number;
  /** Accepted connections. */
  readonly connections: number;
  release(): void;
  /** Resolves when at least `count` records are stored. */
  untilStored(count: number): Promise<void>;
  /** Resolves when at least `count` batches were received. */
  untilReceived(count: number): Promise<void>;
};

export async function createRecordReceiver(
  react: (batch: SentBatch, index: number) => Reaction = () => 'store',
  tls?: { readonly key: string; readonly cert: string },
): Promise<RecordReceiver> {
  const batches: SentBatch[] = [];
  const stored = new Map<string, SentRecord>();
  const stalled: (() => void)[] = [];
  const waiting = new Set<() => void>();
  let concurrent = 0;
  let maxConcurrent = 0;
  let connections = 0;

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    concurrent += 1;
    maxConcurrent = Math.max(maxConcurrent, concurrent);
    response.on('close', () => (concurrent -= 1));
    const body = await text(request);
    const { source, records } = JSON.parse(body) as Pick<SentBatch, 'source' | 'records'>;
    const token = String(request.headers.authorization).replace('Bearer ', '');
    const batch = { source, records, token, path: request.url ?? '', body };
    const index = batches.push(batch) - 1;
    reply(response, batch, react(batch, index));
    for (const check of waiting) check();
  }

  function reply(response: ServerResponse, batch: SentBatch, reaction: Reaction): void {
    if (reaction === 'store' || reaction === 'store and disconnect')
      for (const record of batch.records) stored.set(`${batch.source} ${record.number}`, record);
    if (reaction === 'disconnect' || reaction === 'store and disconnect') response.socket?.destroy();
    else if (reaction === 'stall') stalled.push(() => reply(response, batch, 'store'));
    else if (reaction === 'other server') response.end('<html>Welcome</html>');
    else if (reaction === 'store')
      response.end(JSON.stringify({ received: batch.records.length, added: batch.records.length }));
    else response.writeHead(reaction.status, reaction.fields).end('{"detail":"no"}');
  }

  function untilTrue(isTrue: () => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (!isTrue()) return;
      waiting.delete(check);
      resolve();
    };
    waiting.add(check);
    check();
    return promise;
  }

  const onAny = (request: IncomingMessage, response: ServerResponse): void => {
    onRequest(request, response).catch(() => response.destroy());
  };
  const server: Server = tls === undefined ? createServer(onAny) : createTlsServer(tls, onAny);
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    batches,
    get stored() {
      return [...stored.values()];
    },
    get maxConcurrent() {
      return maxConcurrent;
    },
    get connections() {
      return connections;
    },
    release() {
      for (const respond of stalled.splice(0)) respond();
      for (const check of waiting) check();
    },
    untilStored: (count) => untilTrue(() => stored.size >= count),
    untilReceived: (count) => untilTrue(() => batches.length >= count),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

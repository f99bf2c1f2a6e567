// Stands where the platform does and keeps records as it does: by source and number, once each. What it does with a
// batch is the test's choice, so that it can be slow, busy, gone in the middle, or somebody else.
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
  | 'take'
  /** Stores the batch; the response is never sent. */
  | 'take and die'
  | 'die'
  /** Responds when `release` is called. */
  | 'stall'
  /** Says 200 and has kept nothing. */
  | 'outsider'
  | { readonly status: number; readonly fields?: Readonly<Record<string, string>> };

export type RecordReceiver = AsyncDisposable & {
  readonly url: string;
  readonly batches: readonly SentBatch[];
  /** What was kept, in the order of arrival. */
  readonly kept: readonly SentRecord[];
  /** The most requests that were open at a time. */
  readonly mostAtOnce: number;
  readonly sockets: number;
  release(): void;
  /** Resolves when so many records are kept. */
  keeps(count: number): Promise<void>;
  /** Resolves when so many batches have come. */
  receives(count: number): Promise<void>;
};

export async function createRecordReceiver(
  react: (batch: SentBatch, index: number) => Reaction = () => 'take',
  tls?: { readonly key: string; readonly cert: string },
): Promise<RecordReceiver> {
  const batches: SentBatch[] = [];
  const kept = new Map<string, SentRecord>();
  const stalled: (() => void)[] = [];
  const waiting = new Set<() => void>();
  let atOnce = 0;
  let mostAtOnce = 0;
  let sockets = 0;

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    response.on('close', () => (atOnce -= 1));
    const body = await text(request);
    const { source, records } = JSON.parse(body) as Pick<SentBatch, 'source' | 'records'>;
    const token = String(request.headers.authorization).replace('Bearer ', '');
    const batch = { source, records, token, path: request.url ?? '', body };
    const index = batches.push(batch) - 1;
    reply(response, batch, react(batch, index));
    for (const look of waiting) look();
  }

  function reply(response: ServerResponse, batch: SentBatch, reaction: Reaction): void {
    if (reaction === 'take' || reaction === 'take and die')
      for (const record of batch.records) kept.set(`${batch.source} ${record.number}`, record);
    if (reaction === 'die' || reaction === 'take and die') response.socket?.destroy();
    else if (reaction === 'stall') stalled.push(() => reply(response, batch, 'take'));
    else if (reaction === 'outsider') response.end('<html>Welcome</html>');
    else if (reaction === 'take')
      response.end(JSON.stringify({ received: batch.records.length, added: batch.records.length }));
    else response.writeHead(reaction.status, reaction.fields).end('{"detail":"no"}');
  }

  function untilTrue(isSo: () => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (!isSo()) return;
      waiting.delete(look);
      resolve();
    };
    waiting.add(look);
    look();
    return promise;
  }

  const onAny = (request: IncomingMessage, response: ServerResponse): void => {
    onRequest(request, response).catch(() => response.destroy());
  };
  const server: Server = tls === undefined ? createServer(onAny) : createTlsServer(tls, onAny);
  server.on('connection', () => (sockets += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    batches,
    get kept() {
      return [...kept.values()];
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    get sockets() {
      return sockets;
    },
    release() {
      for (const go of stalled.splice(0)) go();
      for (const look of waiting) look();
    },
    keeps: (count) => untilTrue(() => kept.size >= count),
    receives: (count) => untilTrue(() => batches.length >= count),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// Clients that do not let go of a connection that is over, or that nobody hears of: each is gone in bounded time, leaves one
// record, and does not hold up the way down.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { headersFrame, pingFrame, windowFrame } from '../../support/h2-frames.ts';
import { type H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import { encodeBlock } from '../../support/hpack.ts';
import { keepAccepted } from '../accept/accepted-sockets.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

/** Of which most is what a busy machine may need. */
const SOON_MS = 8_000;
const IDLE_MS = 500;
const large = Buffer.alloc(20_000_000);
const noise = Buffer.alloc(100_000, 0xa5);

/** A host whose responses are more than the system takes for a client that does not read. */
async function respond({ request, head, data, response }: H2Exchange): Promise<void> {
  if (request.path === '/silent') return;
  if (request.path === '/large') {
    await head(200);
    await data(large, { isEnd: true });
  } else await response(200, [], 'whole');
}

/** Wants two large responses, and reads no more once they have begun. */
async function stopReading(client: H2WireClient): Promise<void> {
  await client.send(windowFrame(0, 0x3fffffff));
  const streams = [await open(client, '/large'), await open(client, '/large')];
  for (const stream of streams) await client.peer.until(() => stream.length > 0 || undefined, 'a beginning');
  client.pause();
}

const open = (client: H2WireClient, path: string) => client.open(client.fields(path), { isEnd: true });
const sendPings = (client: H2WireClient, count: number) =>
  client.send(...Array.from({ length: count }, () => pingFrame()));

type Row = {
  readonly what: string;
  /** What is said of the connection: of one whose streams all have their record nothing. */
  readonly end?: { readonly reason: string; readonly cause?: string };
  act(client: H2WireClient): unknown;
};
const rows: readonly Row[] = [
  {
    what: 'stops reading and sends pings',
    end: { reason: 'client_flood', cause: 'pings' },
    async act(client) {
      await stopReading(client);
      await sendPings(client, 1_000);
    },
  },
  {
    what: 'stops reading and sends what is no frame',
    end: { reason: 'client_protocol_error' },
    async act(client) {
      await stopReading(client);
      await client.send(noise);
    },
  },
  {
    what: 'sends what is no frame, and stays',
    end: { reason: 'client_protocol_error' },
    act: (client) => client.send(noise),
  },
  {
    what: 'sends pings, and stays',
    end: { reason: 'client_flood', cause: 'pings' },
    act: (client) => sendPings(client, 1_000),
  },
  {
    what: 'says nothing, and stays',
    end: { reason: 'client_gone' },
    act: (client) => client.goaway(),
  },
  { what: 'stops reading, and stays', act: stopReading },
];

const stubborn = { isGranting: false, settings: { initial_window_size: 0x7fffffff } };

function createPath(): Promise<H2Path> {
  return createH2Path({ origin: { respond }, proxy: { config: { timeouts: { client_idle_ms: IDLE_MS } } } });
}

describe.each(rows)('a client that $what', ({ act, end }) => {
  it('loses its connection soon, with one record, and the way down is free', async () => {
    await using path = await createPath();
    using accepted = keepAccepted(path.proxy.port);
    const client = await path.client(stubborn);
    await act(client);
    const startMs = performance.now();
    await accepted.gone();
    expect(performance.now() - startMs).toBeLessThan(SOON_MS);
    const closingMs = performance.now();
    await path.proxy[Symbol.asyncDispose]();
    expect(performance.now() - closingMs).toBeLessThan(SOON_MS);
    const records = path.proxy.records();
    const ends = records.filter(({ method }) => method === 'CONNECT');
    expect(ends).toMatchObject(end ? [{ outcome: 'failed', ...end }] : []);
    expect(records).toHaveLength(ends.length + path.origin.streams.length);
  });

  it('does not hold up the way down', async () => {
    await using path = await createPath();
    using accepted = keepAccepted(path.proxy.port);
    const client = await path.client(stubborn);
    await act(client);
    const closingMs = performance.now();
    await path.proxy[Symbol.asyncDispose]();
    expect(performance.now() - closingMs).toBeLessThan(SOON_MS);
    await accepted.gone();
  });
});

describe('the streams of a client that floods', () => {
  it('are lost by the flood, as their records say, and cancelled at their host', async () => {
    await using path = await createPath();
    const client = await path.client();
    for (let n = 0; n < 3; n += 1) await open(client, '/silent');
    await path.origin.stream(2);
    await sendPings(client, 1_000);
    await path.proxy.record(3);
    const records = path.proxy.records().map(({ method, path: at, reason }) => [method, at, reason]);
    expect(records).toEqual([
      ['CONNECT', undefined, 'client_flood'],
      ...Array.from({ length: 3 }, () => ['GET', '/silent', 'client_flood']),
    ]);
    for (const stream of path.origin.streams) expect(await stream.resetOrClosed()).toBe('CANCEL');
  });
});

describe('streams that node:http2 resets before we hear of them', () => {
  const request = (client: H2WireClient, ...extra: readonly (readonly [string, string])[]): Buffer =>
    headersFrame(client.nextId(), encodeBlock(client.fields('/', extra)), { isEnd: true });
  const many = (count: number) => Array.from({ length: count }, (_, n) => [`x-${n}`, ''] as const);

  it.each([
    ['a name in capitals', [['X-Upper', '1']], 'PROTOCOL_ERROR'],
    ['a field of one hop', [['connection', 'close']], 'PROTOCOL_ERROR'],
    ['a list of too many', many(2_000), 'ENHANCE_YOUR_CALM'],
    ['a list of too many bytes', [['x', 'y'.repeat(20_000)]], 'ENHANCE_YOUR_CALM'],
  ] as const)('leave a record: %s', async (_, extra, code) => {
    await using path = await createPath();
    const client = await path.client();
    // Behind it our limits are known, and hold.
    await client.request(client.fields('/'));
    await client.send(request(client, ...extra), request(client), request(client, ...extra));
    expect((await client.response(client.peer.stream(5))).text).toBe('whole');
    for (const id of [3, 7]) expect(await client.peer.stream(id).resetOrClosed()).toBe(code);
    const refused = { outcome: 'refused', reason: 'malformed_request', protocol: 'h2' };
    await expect.poll(() => countedIn(path), { timeout: SOON_MS }).toBe(2);
    for (const record of path.proxy.records().filter(({ cause }) => cause !== undefined))
      expect(record).toMatchObject(refused);
    expect(path.origin.streams).toHaveLength(2);
  });

  it('are not those with too many fields: these get responses, 431, each with a record', async () => {
    await using path = await createPath();
    const client = await path.client();
    const responses = [];
    for (const count of [101, 300]) responses.push(await client.request(client.fields('/', many(count))));
    expect(responses.map((response) => [response.status, refusalOf(response)])).toEqual(
      responses.map(() => [431, 'head_too_large']),
    );
    const refused = { outcome: 'refused', reason: 'head_too_large', status: 431, protocol: 'h2' };
    expect(path.proxy.records()).toMatchObject(responses.map(() => refused));
    expect(path.origin.streams).toEqual([]);
  });

  /** As its records say: `http2_layer: N`. */
  function countedIn(path: H2Path): number {
    const causes = path.proxy.records().map(({ cause }) => /^http2_layer: (\d+)$/.exec(String(cause))?.[1]);
    return causes.reduce((sum, count) => sum + Number(count ?? 0), 0);
  }
});

// Slots of an upstream session are returned, however a stream ends: a leak would cost every exchange behind it a connection,
// and keep what it holds for ever.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2WireClient } from '../../support/h2-wire-client.ts';
import { createH2Path, type H2PathOptions } from './h2-path.ts';

/** As many places as the host has: each that is kept is one too few. */
const PLACES = 20;
const REQUESTS = 200;
const responseBytes = 200_000;
/** A client with a window that the response does not fit in, and which takes no more. */
const slow = { isGranting: false, settings: { initial_window_size: 1_000 } };

type Row = {
  readonly what: string;
  /** What the host does. */
  respond(exchange: H2Exchange): Promise<unknown>;
  /** One request, and how it ends. */
  act(client: H2WireClient): Promise<unknown>;
  readonly origin?: H2PathOptions['origin'];
};

const large = ({ response }: H2Exchange): Promise<boolean> => response(200, [], Buffer.alloc(responseBytes));
const get = (client: H2WireClient) => client.request(client.fields('/odd'));

async function cancelBuffered(client: H2WireClient, code: 'CANCEL' | 'NO_ERROR'): Promise<void> {
  const stream = await client.open(client.fields('/odd'), { isEnd: true });
  await client.peer.until(() => stream.length === 1_000 || undefined, 'a full window');
  await stream.reset(code);
}

const rows: readonly Row[] = [
  { what: 'a whole response', respond: ({ response }) => response(200, [], 'x'), act: get },
  {
    what: 'a response that its client cancels while it waits here',
    respond: large,
    act: (client) => cancelBuffered(client, 'CANCEL'),
  },
  {
    what: 'a response that its client resets without an error while it waits here',
    respond: large,
    act: (client) => cancelBuffered(client, 'NO_ERROR'),
  },
  { what: '205 with a body', respond: ({ response }) => response(205, [], 'xyz'), act: get },
  { what: 'a refused 407 with a body', respond: ({ response }) => response(407, [], 'xyz'), act: get },
  {
    what: 'a response that is none, with a body',
    respond: ({ response }) => response(999, [], 'xyz'),
    act: get,
  },
  {
    what: 'a response to HEAD that ends behind its head',
    respond: async ({ head, data }) => (await head(200), data('', { isEnd: true })),
    act: (client) => client.request(client.fields('/odd', [], { ':method': 'HEAD' })),
  },
  {
    what: 'too many interim heads, and then a response',
    async respond({ interim, response }) {
      for (let n = 0; n < 30; n += 1) await interim(103);
      await response(200, [], 'xyz');
    },
    act: get,
  },
  {
    what: 'an early response to an upload',
    respond: ({ response }) => response(413, [], 'xyz'),
    act: (client) =>
      client.request(client.fields('/odd', [], { ':method': 'POST' }), { body: Buffer.alloc(responseBytes) }),
  },
  {
    what: 'an upload that waits for its host and is reset without an error',
    respond: async () => undefined,
    async act(client) {
      const stream = await client.open(client.fields('/odd', [], { ':method': 'POST' }));
      await stream.data(Buffer.alloc(30_000));
      await stream.reset('NO_ERROR');
    },
    origin: { settings: { max_concurrent_streams: PLACES, initial_window_size: 0 } },
  },
];

function pathOf({ respond, origin }: Pick<Row, 'respond' | 'origin'>) {
  return createH2Path({
    origin: {
      settings: { max_concurrent_streams: PLACES },
      ...origin,
      async respond(exchange) {
        if (exchange.request.path === '/odd') await respond(exchange);
        else await exchange.response(200, [], 'a slot');
      },
    },
  });
}

async function expectCapacity(client: H2WireClient): Promise<void> {
  for (let n = 0; n < REQUESTS; n += 1)
    expect(await client.request(client.fields('/'))).toMatchObject({ status: 200, text: 'a slot' });
}

describe.each(rows)('$what', (row) => {
  it('returns its slot: the next two hundred requests use the one connection', async () => {
    await using path = await pathOf(row);
    const client = await path.client(slow);
    for (let n = 0; n < PLACES; n += 1) await row.act(client);
    await path.proxy.record(PLACES - 1);
    await expectCapacity(client);
    expect(path.origin.connections).toHaveLength(1);
  });
});

describe('a response that waits here as its client leaves', () => {
  it.each<readonly [string, (client: H2WireClient) => void]>([
    ['FIN', (client) => client.wire.end()],
    ['RST of TCP', (client) => client.wire.reset()],
  ])('by %s keeps no place: the next client finds the one connection', async (_, leave) => {
    await using path = await pathOf({ respond: large });
    for (let n = 0; n < 3; n += 1) {
      const client = await path.client(slow);
      const stream = await client.open(client.fields('/odd'), { isEnd: true });
      await client.peer.until(() => stream.length === 1_000 || undefined, 'a full window');
      leave(client);
      expect(await path.proxy.record(n)).toMatchObject({ outcome: 'failed', reason: 'client_gone' });
    }
    await expectCapacity(await path.client());
    expect(path.origin.connections).toHaveLength(1);
  });
});

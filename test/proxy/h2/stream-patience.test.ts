// Streams that must wait: for a session that is not there yet, for a host that refused them, for a response that takes
// longer than its host stays. None of them may lose anything by it.
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import { dataFrame, headersFrame } from '../../support/h2-frames.ts';
import { encodeBlock } from '../../support/hpack.ts';
import { createH2Path } from './h2-path.ts';

const PIECES = 15;
const PIECE_MS = 100;

it('a body that is empty and ends before its host is reached is sent as such', async () => {
  const gate = Promise.withResolvers<void>();
  const respond = async ({ request, response }: H2Exchange): Promise<void> => {
    if (request.path === '/held') await gate.promise;
    else await request.ended();
    await response(200, [], String(request.body.length));
  };
  await using path = await createH2Path({ origin: { settings: { max_concurrent_streams: 1 }, respond } });
  const client = await path.client();
  const held = client.request(client.fields('/held'));
  await path.origin.stream(0);
  // One stream is all that the first session grants: this one waits for a second session to be dialled.
  const stream = client.peer.stream(client.nextId());
  const head = encodeBlock(client.fields('/', [], { ':method': 'POST' }));
  await client.send(headersFrame(stream.id, head), dataFrame(stream.id, '', { isEnd: true }));
  expect(await client.response(stream)).toMatchObject({ status: 200, text: '0' });
  gate.resolve();
  expect(await held).toMatchObject({ status: 200 });
});

it('a body that grows while it waits to be sent again arrives whole', async () => {
  const [first, rest] = [Buffer.alloc(60_000, 'first '), Buffer.alloc(60_000, 'rest ')];
  const refused = Promise.withResolvers<void>();
  let isFirst = true;
  const respond = async ({ request, goaway, reset, response }: H2Exchange): Promise<void> => {
    if (isFirst) {
      isFirst = false;
      await arrived.promise;
      // It leaves, so that another session must be dialled, which takes its time.
      await goaway(0);
      await reset('REFUSED_STREAM');
      return refused.resolve();
    }
    await request.ended();
    await response(200, [], request.body.sha256);
  };
  const arrived = Promise.withResolvers<void>();
  await using path = await createH2Path({ origin: { respond } });
  const client = await path.client();
  const stream = await client.open(client.fields('/', [], { ':method': 'POST' }), { isEnd: false });
  await stream.data(first);
  const { peer } = await path.origin.connection(0);
  await peer?.frame(() => peer.stream(1).length >= first.length);
  arrived.resolve();
  await refused.promise;
  await stream.data(rest, { isEnd: true });
  const { status, text } = await client.response(stream);
  const whole = createHash('sha256')
    .update(Buffer.concat([first, rest]))
    .digest('hex');
  expect([status, text]).toEqual([200, whole]);
});

it('a response goes on for as long as it takes after its host has said that it leaves', async () => {
  const respond = async ({ head, data, goaway }: H2Exchange): Promise<void> => {
    await head(200);
    await goaway();
    for (let i = 0; i < PIECES; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, PIECE_MS));
      await data('piece', { isEnd: i === PIECES - 1 });
    }
  };
  await using path = await createH2Path({ origin: { respond } });
  const client = await path.client();
  const response = await client.request(client.fields('/'));
  expect(response).toMatchObject({ status: 200, text: 'piece'.repeat(PIECES), reset: undefined });
});

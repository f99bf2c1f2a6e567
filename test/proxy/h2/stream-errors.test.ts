// Errors of the proxy itself while a body is relayed. The listeners of a stream, and what waits for the end of a turn, run
// where nothing catches: an exception there would end the process, and with it the connections of every client.
import { afterEach, expect, it, vi } from 'vitest';
import { FloodGauge } from '../../../src/proxy/h2/flood-gauge.ts';
import { ResponseWriter } from '../../../src/proxy/h2/response-writer.ts';
import { TurnWriter } from '../../../src/proxy/h2/turn-writer.ts';
import { BodyMask } from '../../../src/proxy/mask/body-mask.ts';
import { echoStream } from '../../support/h2-exchange.ts';
import { type H2Response, refusalOf } from '../../support/h2-wire-client.ts';
import { watchUncaught } from '../../support/uncaught-exception.ts';
import { createH2Path } from './h2-path.ts';

afterEach(() => vi.restoreAllMocks());

function fail(): never {
  throw new TypeError('a defect of the proxy');
}

it.each<readonly [string, string, () => unknown]>([
  ['data', 'the mask', () => vi.spyOn(BodyMask.prototype, 'push').mockImplementationOnce(fail)],
  ['data', 'the writer', () => vi.spyOn(ResponseWriter.prototype, 'add').mockImplementationOnce(fail)],
  ['end', 'the mask', () => vi.spyOn(BodyMask.prototype, 'end').mockImplementationOnce(fail)],
  ['end', 'the writer', () => vi.spyOn(ResponseWriter.prototype, 'end').mockImplementationOnce(fail)],
  [
    'the end of a turn',
    'the writer',
    () => vi.spyOn(ResponseWriter.prototype, 'flush').mockImplementationOnce(fail),
  ],
])('an exception at %s in %s ends its stream only', async (_, __, breakPart) => {
  using uncaught = watchUncaught();
  const gates = { '/beside': Promise.withResolvers<void>(), '/broken': Promise.withResolvers<void>() };
  await using path = await createH2Path({
    origin: {
      async respond({ request, head, data }) {
        await head(200);
        await data('first');
        await gates[request.path as keyof typeof gates].promise;
        await data(' last', { isEnd: true });
      },
    },
    proxy: { config: { scrub: 'body' } },
  });
  const client = await path.client();
  const open = async (name: string): Promise<{ readonly response: Promise<H2Response> }> => {
    const stream = await client.open(client.fields(name), { isEnd: true });
    await client.peer.until(() => stream.length > 0 || undefined, 'the first piece');
    return { response: Promise.race([client.response(stream), uncaught.thrown]) };
  };
  const beside = await open('/beside');
  const broken = await open('/broken');
  breakPart();
  gates['/broken'].resolve();
  expect(await broken.response).toMatchObject({ status: 200, reset: 'INTERNAL_ERROR' });
  gates['/beside'].resolve();
  expect(await beside.response).toMatchObject({ status: 200, text: 'first last', reset: undefined });
  expect(await path.proxy.record(0)).toMatchObject({
    path: '/broken',
    outcome: 'failed',
    reason: 'internal_error',
  });
  expect(await path.proxy.record(1)).toMatchObject({ path: '/beside', outcome: 'injected' });
  expect(path.proxy.lines).toContainEqual(
    expect.objectContaining({ msg: 'exchange failed', error: 'TypeError' }),
  );
});

it.each<readonly [string, sent: string, () => unknown]>([
  ['a piece', 'more', () => vi.spyOn(FloodGauge.prototype, 'onBody').mockImplementationOnce(fail)],
  ['data', 'more', () => vi.spyOn(TurnWriter.prototype, 'add').mockImplementationOnce(fail)],
  ['the end of a turn', 'more', () => vi.spyOn(TurnWriter.prototype, 'flush').mockImplementationOnce(fail)],
  ['end', '', () => vi.spyOn(TurnWriter.prototype, 'flush').mockImplementationOnce(fail)],
])('an exception at %s of a request body ends its stream only', async (_, sent, breakPart) => {
  using uncaught = watchUncaught();
  await using path = await createH2Path({ origin: { respond: echoStream } });
  const client = await path.client();
  const post = async (name: string) => {
    const stream = await client.open(client.fields(name, [], { ':method': 'POST' }));
    await stream.data('first');
    return { stream, response: Promise.race([client.response(stream), uncaught.thrown]) };
  };
  const beside = await post('/beside');
  const broken = await post('/broken');
  const { peer } = await path.origin.connection(0);
  await peer?.until(() => path.origin.streams[1]?.body.length === 5 || undefined, 'the first piece');
  breakPart();
  await broken.stream.data(sent, { isEnd: sent === '' });
  const refused = await broken.response;
  expect([refused.status, refusalOf(refused)]).toEqual([500, 'internal_error']);
  // Half a body must not arrive as a complete one.
  expect(await path.origin.streams[1]?.ended()).toBe(false);
  await beside.stream.data(' last', { isEnd: true });
  expect(JSON.parse((await beside.response).text)).toMatchObject({ body: { length: 10 } });
  expect(await path.proxy.record(0)).toMatchObject({
    path: '/broken',
    outcome: 'failed',
    reason: 'internal_error',
  });
  expect(path.proxy.lines).toContainEqual(
    expect.objectContaining({ msg: 'exchange failed', error: 'TypeError' }),
  );
});

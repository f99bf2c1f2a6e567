// Fields behind a body: those of a response pass, judged and masked as a head is; those of a request end here.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { H2Response } from '../../support/h2-wire-client.ts';
import type { SentField } from '../../support/hpack.ts';
import { secret } from '../data-path.ts';
import { createH2Path } from './h2-path.ts';

/** What a client gets of a response whose body is followed by these fields. */
async function respondWith(trailers: readonly SentField[], body = 'body'): Promise<H2Response> {
  const respond = async ({ head, data, trailers: send }: H2Exchange): Promise<void> => {
    await head(200);
    if (body !== '') await data(body);
    await send(trailers);
  };
  await using path = await createH2Path({ origin: { respond } });
  const client = await path.client();
  const response = await client.request(client.fields('/'));
  await path.proxy.record(0);
  return response;
}

describe('trailers of a response', () => {
  it('pass behind its body, in their order, each as often as it stands there', async () => {
    const trailers = [
      ['grpc-status', '0'],
      ['grpc-message', 'all is well'],
      ['x-twice', 'a'],
      ['x-twice', 'b'],
    ] as const;
    const response = await respondWith(trailers);
    expect(response).toMatchObject({ status: 200, text: 'body', trailers, reset: undefined });
  });

  it('pass without a body before them', async () => {
    expect(await respondWith([['grpc-status', '5']], '')).toMatchObject({
      status: 200,
      length: 0,
      trailers: [['grpc-status', '5']],
    });
  });

  it('that stand in the head itself pass as that head, which ends the stream', async () => {
    const fields = [
      ['content-type', 'application/grpc'],
      ['grpc-status', '12'],
    ] as const;
    const respond = async ({ head }: H2Exchange): Promise<void> =>
      void (await head(200, fields, { isEnd: true }));
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const stream = await client.open(client.fields('/'), { isEnd: true });
    expect(await client.response(stream)).toMatchObject({ headers: fields, length: 0, trailers: undefined });
    expect(stream.blocks).toHaveLength(1);
    expect(client.peer.counts['DATA']).toBeUndefined();
  });

  it('pass in numbers, and behind a body of a megabyte', async () => {
    const trailers = Array.from({ length: 90 }, (_, i) => [`x-trailer-${i}`, `${i}`.repeat(50)] as const);
    const response = await respondWith(trailers, 'm'.repeat(1_000_000));
    expect(response.trailers).toEqual(trailers);
    expect(response.length).toBe(1_000_000);
  });

  it('that say something of the message before them, or lead elsewhere, do not pass', async () => {
    const response = await respondWith([
      ['content-length', '4'],
      ['host', 'other.test'],
      ['alt-svc', 'h3=":443"'],
      ['x-kept', 'yes'],
    ]);
    expect(response).toMatchObject({ text: 'body', trailers: [['x-kept', 'yes']], reset: undefined });
  });

  it('of which none may pass leave the end to the body', async () => {
    const response = await respondWith([['alt-svc', 'h3=":443"']]);
    expect(response).toMatchObject({ text: 'body', reset: undefined });
    expect(response.trailers ?? []).toEqual([]);
  });

  it.each([
    ['as it is', secret],
    ['in base64', Buffer.from(secret).toString('base64')],
  ])('hide a credential that the host sends back %s', async (_, echoed) => {
    const { trailers } = await respondWith([['x-echo', `Digest ${echoed}`]]);
    expect(trailers?.[0]?.[1]).toMatch(/^Digest \*+$/);
  });

  it.each<readonly [string, readonly SentField[]]>([
    ['connection', [['connection', 'close']]],
    ['transfer-encoding', [['transfer-encoding', 'chunked']]],
    ['a pseudo-field', [[':status', '500']]],
    ['a name in upper case', [['X-Upper', 'a']]],
    ['more than a head may have', Array.from({ length: 101 }, (__, i) => [`x-${i}`, 'a'] as const)],
    ['more bytes than a head may have', [['x-long', 'a'.repeat(40_000)]]],
  ])('that no response may have, %s, end the stream with an error', async (_, trailers) => {
    const respond = async ({ head, data, trailers: send }: H2Exchange): Promise<void> => {
      await head(200);
      await data('body');
      await send(trailers);
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const response = await client.request(client.fields('/'));
    expect(response.trailers).toBeUndefined();
    expect(response.reset).toBeDefined();
    expect(response.reset).not.toBe('NO_ERROR');
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed', status: 200 });
  });
});

describe('trailers of a request', () => {
  it.each(['body', ''])('are dropped, and what was before them (%j) is whole', async (body) => {
    await using path = await createH2Path();
    const client = await path.client();
    const fields = client.fields('/', [['trailer', 'x-sum']], { ':method': 'POST' });
    const trailers = [
      ['x-sum', '1'],
      ['authorization', 'Bearer mine'],
    ] as const;
    expect(await client.request(fields, { body, trailers })).toMatchObject({ status: 200 });
    const [request] = path.origin.streams;
    expect(await request?.ended()).toBe(true);
    expect([request?.trailers, request?.body.content.toString()]).toEqual([undefined, body]);
    expect(request?.values('authorization')).toEqual([`Bearer ${secret}`]);
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'injected', bytes_up: body.length });
  });
});

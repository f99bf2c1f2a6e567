// Field names that node:http2 refuses to send, wherever they come from: it throws, and what throws in an event of a stream
// would end the process. One stream may be lost by it, or none; the others of its connection go on.
import { describe, expect, it } from 'vitest';
import type { H2Exchange } from '../../support/h2-exchange.ts';
import type { SentField } from '../../support/hpack.ts';
import { createDataPath, head } from '../data-path.ts';
import { createH2Path } from './h2-path.ts';

type Row = { readonly name: string; readonly value: string; readonly isDropped?: true };
// nghttp2 lets the dropped ones pass; of the others it resets the stream before we hear of them.
const rows: readonly Row[] = [
  { name: 'http2-settings', value: 'AAMAAABk', isDropped: true },
  { name: 'te', value: 'trailers', isDropped: true },
  { name: 'te', value: 'gzip' },
  { name: 'connection', value: 'close' },
  { name: 'upgrade', value: 'h2c' },
  { name: 'keep-alive', value: 'timeout=5' },
  { name: 'proxy-connection', value: 'keep-alive' },
  { name: 'transfer-encoding', value: 'chunked' },
];

type Place = 'interim head' | 'head' | 'trailer';
const places: readonly Place[] = ['interim head', 'head', 'trailer'];

async function respondWith({ interim, head, data, trailers }: H2Exchange, place: Place, field: SentField) {
  const fields = (at: Place): readonly SentField[] => (at === place ? [field, ['x-kept', 'yes']] : []);
  await interim(103, fields('interim head'));
  await head(200, fields('head'));
  await data('body');
  await trailers(fields('trailer'));
}

describe.each(places)('in the %s of a response', (place) => {
  it.each(rows)('$name: $value ends no other stream', async ({ name, value, isDropped }) => {
    const gate = Promise.withResolvers<void>();
    const respond = async (exchange: H2Exchange): Promise<void> => {
      if (exchange.request.path !== '/bystander') return respondWith(exchange, place, [name, value]);
      await exchange.head(200);
      await exchange.data('be');
      await gate.promise;
      await exchange.data('hind', { isEnd: true });
    };
    await using path = await createH2Path({ origin: { respond } });
    const client = await path.client();
    const bystander = await client.open(client.fields('/bystander'), { isEnd: true });
    await client.head(bystander);
    const response = await client.request(client.fields('/'));
    const record = await path.proxy.record(0);
    if (isDropped) {
      const fields = [...response.interim, response].flatMap(({ headers }) => headers);
      expect(response).toMatchObject({ status: 200, text: 'body', reset: undefined });
      expect([...fields, ...(response.trailers ?? [])]).toEqual([['x-kept', 'yes']]);
      expect(record).toMatchObject({ outcome: 'injected' });
    } else {
      expect(response).toMatchObject({ reset: 'PROTOCOL_ERROR' });
      expect(record).toMatchObject({ outcome: 'failed', reason: 'upstream_reset' });
    }
    gate.resolve();
    expect(await client.response(bystander)).toMatchObject({ text: 'behind', reset: undefined });
    expect(path.proxy.lines.filter(({ msg }) => msg === 'exchange failed')).toEqual([]);
  });
});

describe('in a request', () => {
  it.each(rows)(
    '$name: $value reaches no host and ends no other stream',
    async ({ name, value, isDropped }) => {
      await using path = await createH2Path();
      const client = await path.client();
      const bystander = await client.open(client.fields('/bystander', [], { ':method': 'POST' }));
      await bystander.data('be');
      await path.origin.stream(0);
      const post = client.fields('/', [], { ':method': 'POST' });
      const inHead = await client.request(client.fields('/', [[name, value]]));
      const inTrailers = await client.request(post, { body: 'body', trailers: [[name, value]] });
      const verdict = isDropped ? { status: 200 } : { reset: 'PROTOCOL_ERROR' };
      for (const response of [inHead, inTrailers]) expect(response).toMatchObject(verdict);
      await bystander.data('hind', { isEnd: true });
      expect((await client.response(bystander)).status).toBe(200);
      const [first, ...others] = path.origin.streams;
      expect(first?.body.content.toString()).toBe('behind');
      // `te: trailers` is what HTTP/2 has of it.
      const sent = others.flatMap((stream) => stream.values(name));
      for (const text of sent) expect([name, text]).toEqual(['te', 'trailers']);
      for (const { trailers } of others) expect(trailers).toBeUndefined();
      expect(path.origin.connections).toHaveLength(1);
    },
  );
});

describe('over HTTP/1.1', () => {
  it('HTTP2-Settings ends here, from either side', async () => {
    const response = head('HTTP/1.1 200 OK', 'HTTP2-Settings: AAMAAABk', 'X-Kept: yes', 'Content-Length: 0');
    await using path = await createDataPath({ respond: ({ send }) => send(response) });
    const client = await path.tunnel();
    await client.send(
      head('GET / HTTP/1.1', `Host: ${path.authority}`, 'HTTP2-Settings: AAMAAABk', 'X-A: 1'),
    );
    const { head: responded } = await client.readResponse();
    expect(responded.headers.map(([name]) => name)).toContain('X-Kept');
    expect(responded.text).not.toMatch(/http2-settings/i);
    expect(path.origin.requests[0]?.headers.map(([name]) => name)).toContain('X-A');
    expect(path.origin.transcripts.join('')).not.toMatch(/http2-settings/i);
  });
});

// The rows of T-01: what a client offers by ALPN, what its host speaks, and what both then get; and clients that choose
// one protocol and speak another.
import { describe, expect, it } from 'vitest';
import type { OriginProtocol } from '../../support/h2-connection.ts';
import { PREFACE, settingsFrame } from '../../support/h2-frames.ts';
import { H2WireClient, refusalOf } from '../../support/h2-wire-client.ts';
import { WireClient } from '../../support/wire-client.ts';
import { head } from '../data-path.ts';
import { createH2Path, type H2Path } from './h2-path.ts';

const both = ['h2', 'http/1.1'] as const;
const get = (path: H2Path): string => head('GET /1 HTTP/1.1', `Host: ${path.authority}`);

type AlpnRow = readonly [
  offers: readonly string[],
  speaks: readonly OriginProtocol[],
  chosen: OriginProtocol | false,
  asked: readonly string[] | undefined,
  responded: readonly [status: number, code?: string],
];
/** An origin that speaks nothing knows no ALPN. */
const rows: readonly AlpnRow[] = [
  [both, both, 'h2', both, [200]],
  [both.toReversed(), both, 'h2', both.toReversed(), [200]],
  [both, both.toReversed(), 'http/1.1', both, [200]],
  [['h2'], both, 'h2', ['h2'], [200]],
  [['http/1.1'], both, 'http/1.1', ['http/1.1'], [200]],
  [[], both, false, ['http/1.1'], [200]],
  [both, ['http/1.1'], 'http/1.1', both, [200]],
  [both, ['h2'], 'h2', both, [200]],
  [both, [], 'http/1.1', undefined, [200]],
  [['spdy/3', 'h2', 'h2', 'http/1.0'], both, 'h2', ['h2'], [200]],
  [['h2'], ['http/1.1'], 'h2', ['h2'], [502, 'h2_unavailable']],
  [['h2'], [], 'h2', undefined, [502, 'h2_unavailable']],
  [['http/1.1'], ['h2'], 'http/1.1', ['http/1.1'], [502, 'alpn_changed']],
];

describe('T-01', () => {
  it.each(rows)('offers %j to one that speaks %j: %j', async (offers, speaks, chosen, asked, responded) => {
    await using path = await createH2Path({ origin: { protocols: speaks } });
    const wire = await path.wire(offers);
    expect(wire.socket).toMatchObject({ alpnProtocol: chosen });
    const outcome = async (): Promise<readonly unknown[]> => {
      if (chosen !== 'h2') {
        await wire.send(get(path));
        const { status, headers } = (await wire.readResponse()).head;
        return [status, headers.find(([name]) => name === 'X-Sallyport-Error')?.[1]];
      }
      const client = await H2WireClient.over(wire, path.authority);
      const response = await client.request(client.fields('/1'));
      return [response.status, refusalOf(response)];
    };
    expect(await outcome()).toEqual([responded[0], responded[1]]);
    for (const { offered } of path.origin.connections) expect(offered).toEqual(asked);
    const isServed = responded[0] === 200;
    expect(path.origin.streams).toHaveLength(isServed && chosen === 'h2' ? 1 : 0);
    expect(path.origin.http1.requests).toHaveLength(isServed && chosen !== 'h2' ? 1 : 0);
  });

  it.each([[['spdy/3']], [['h2c', 'http/1.0']], [['H2']]])('offers %j, which is nothing', async (offers) => {
    await using path = await createH2Path();
    await expect(path.wire(offers)).rejects.toThrow(/no application protocol/i);
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'alpn_unsupported' });
    expect(path.origin.connections).toHaveLength(0);
  });

  it('chooses h2 and speaks HTTP/1.1', async () => {
    await using path = await createH2Path();
    const wire = await path.wire(['h2']);
    await wire.send(get(path));
    await wire.finished;
    expect(await path.proxy.record(0)).toMatchObject({ outcome: 'failed' });
    expect([path.origin.streams.length, path.origin.http1.requests.length]).toEqual([0, 0]);
  });

  it.each<readonly [string, (path: H2Path) => Promise<WireClient>]>([
    ['inside a tunnel with ALPN http/1.1', (path) => path.wire(['http/1.1'])],
    ['inside a tunnel without ALPN', (path) => path.wire([])],
    ['inside a tunnel without TLS', (path) => openTunnel(path)],
    ['on the proxy port', (path) => WireClient.connect(path.proxy.port)],
  ])('speaks HTTP/2 %s', async (_, connect) => {
    await using path = await createH2Path();
    await using wire = await connect(path);
    await wire.send(Buffer.concat([Buffer.from(PREFACE), settingsFrame()]));
    expect(await wire.readToEnd()).toMatch(/^HTTP\/1\.1 505 .*\r\nX-Sallyport-Error: version_refused\r\n/s);
    expect([path.origin.streams.length, path.origin.http1.requests.length]).toEqual([0, 0]);
  });

  it('learns from the SETTINGS what is not supported: push, CONNECT, more than a hundred streams', async () => {
    await using path = await createH2Path();
    const client = await path.client();
    await client.request(client.fields('/1'));
    const { enable_connect_protocol: connects = 0, ...settings } = client.peer.remote;
    expect(connects).toBe(0);
    expect(settings).toMatchObject({ max_concurrent_streams: 100, max_header_list_size: 16_384 });
    expect(path.origin.connections[0]?.peer?.remote).toMatchObject({ enable_push: 0 });
  });
});

async function openTunnel(path: H2Path): Promise<WireClient> {
  const wire = await WireClient.connect(path.proxy.port);
  expect(await wire.openTunnel(path.authority)).toMatchObject({ status: 200 });
  return wire;
}

// ALPN from end to end: the client speaks what its host chose of the client's own list, what was chosen is remembered,
// and what is remembered wrongly is found out.
import { once } from 'node:events';
import { createServer, type Socket, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createTestAuthority } from '../../support/test-authority.ts';
import { H2WireClient } from '../../support/h2-wire-client.ts';
import type { OriginProtocol } from '../../support/h2-connection.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createDataPath, errorOf, head, secret } from '../data-path.ts';
import { createH2Path } from '../h2/h2-path.ts';

const BOTH = ['h2', 'http/1.1'];

describe('the protocol of a tunnel', () => {
  const rows: readonly [
    client: string[],
    host: OriginProtocol[],
    asked: string[] | undefined,
    chosen: string,
  ][] = [
    [BOTH, ['h2', 'http/1.1'], BOTH, 'h2'],
    [['http/1.1', 'h2'], ['h2', 'http/1.1'], ['http/1.1', 'h2'], 'h2'],
    [['http/1.1', 'h2'], ['http/1.1', 'h2'], ['http/1.1', 'h2'], 'http/1.1'],
    [BOTH, ['http/1.1'], BOTH, 'http/1.1'],
    [BOTH, [], undefined, 'http/1.1'],
    [BOTH, ['h2'], BOTH, 'h2'],
    [['h2'], ['h2', 'http/1.1'], ['h2'], 'h2'],
    [['spdy/3', 'h2', 'h2c', 'http/1.1', 'http/1.0'], ['h2'], BOTH, 'h2'],
    [['http/1.1'], ['h2', 'http/1.1'], ['http/1.1'], 'http/1.1'],
  ];

  it.each(rows)('a client that offers %j and a host of %j: %j is asked for, %s it is', async (...row) => {
    const [client, protocols, asked, chosen] = row;
    await using path = await createH2Path({ origin: { protocols } });
    const wire = await path.wire(client);
    expect((wire.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe(chosen);
    const text = await getVia(wire, path.authority, chosen);
    expect(text).toContain(secret);
    // Asked once: the connection that was asked on has carried the request.
    expect(path.origin.connections).toHaveLength(1);
    expect(path.origin.connections[0]?.offered).toEqual(asked);
  });

  it('a client without a list speaks HTTP/1.1, and its host is dialled for its request', async () => {
    await using path = await createH2Path();
    const wire = await path.wire([]);
    expect(path.origin.connections).toHaveLength(0);
    await getVia(wire, path.authority, 'http/1.1');
    expect(path.origin.connections[0]?.offered).toEqual(['http/1.1']);
  });
});

describe('what a host chose is remembered', () => {
  it('for the next client, whose handshake waits for nobody', async () => {
    await using path = await createH2Path();
    await getVia(await path.wire(BOTH), path.authority, 'h2');
    for (const connection of path.origin.connections) connection.destroy();
    const wire = await path.wire(BOTH);
    expect((wire.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe('h2');
    expect(path.origin.connections).toHaveLength(1);
    await getVia(wire, path.authority, 'h2');
    expect(path.origin.connections).toHaveLength(2);
  });

  it('and a host that has given up HTTP/2 has the client connect again', async () => {
    await using path = await createH2Path();
    await getVia(await path.wire(BOTH), path.authority, 'h2');
    path.origin.offer(['http/1.1']);
    for (const connection of path.origin.connections) connection.destroy();
    const client = await H2WireClient.over(await path.wire(BOTH), path.authority);
    const { reset } = await client.request(client.fields('/'));
    expect(reset).toBe('REFUSED_STREAM');
    await client.closed;
    expect(client.peer.goaways[0]).toMatchObject({ code: 'NO_ERROR' });
    expect(await path.proxy.record(1)).toMatchObject({
      outcome: 'failed',
      reason: 'alpn_changed',
      protocol: 'h2',
    });
    const again = await path.wire(BOTH);
    expect((again.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe('http/1.1');
    expect(await getVia(again, path.authority, 'http/1.1')).toContain(secret);
  });

  it('and a host that has given up HTTP/1.1 is a 502 that says so, once', async () => {
    await using path = await createH2Path({ origin: { protocols: ['http/1.1'] } });
    await getVia(await path.wire(BOTH), path.authority, 'http/1.1');
    path.origin.offer(['h2']);
    for (const connection of path.origin.connections) connection.destroy();
    const wire = await path.wire(BOTH);
    await wire.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
    const response = await wire.readResponse();
    expect([response.head.status, errorOf(response.head)]).toEqual([502, 'alpn_changed']);
    expect(await getVia(await path.wire(BOTH), path.authority, 'h2')).toContain(secret);
  });
});

describe('a client that speaks nothing but HTTP/2', () => {
  it.each([[['http/1.1']], [[]]] as OriginProtocol[][][])(
    'is refused on its stream by a host of %j',
    async (offer) => {
      await using path = await createH2Path({ origin: { protocols: offer } });
      const client = await path.client();
      for (let i = 0; i < 2; i += 1) {
        const { status, headers, text } = await client.request(client.fields('/'));
        expect(status).toBe(502);
        expect(headers).toContainEqual(['x-sallyport-error', 'h2_unavailable']);
        expect(JSON.parse(text)).toMatchObject({ hint: 'connect again and offer http/1.1 by ALPN too' });
      }
      expect(path.origin.http1.requests).toEqual([]);
    },
  );
});

describe('a host that cannot be asked', () => {
  it.each([
    [BOTH, 'http/1.1'],
    [['h2'], 'h2'],
  ])('is told of by the first answer, for a client that offers %j over %s', async (alpn, chosen) => {
    // No certificate of it is trusted.
    const tls = { authority: createTestAuthority('unknown'), names: ['api.test'] };
    await using path = await createH2Path({ origin: { tls } });
    const wire = await path.wire(alpn);
    expect((wire.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe(chosen);
    if (chosen === 'h2') {
      const client = await H2WireClient.over(wire, path.authority);
      expect((await client.request(client.fields('/'))).headers).toContainEqual([
        'x-sallyport-error',
        'upstream_untrusted',
      ]);
    } else {
      await wire.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
      expect(errorOf((await wire.readResponse()).head)).toBe('upstream_untrusted');
    }
    // It was dialled once: the answer is that of the dial that asked.
    expect(path.origin.connections).toHaveLength(1);
  });

  it('a later request dials it again', async () => {
    await using path = await createDataPath({ names: { 'api.test': new Error('no such name') } });
    const client = await WireClient.connectThrough(path.proxy.port, path.authority, {
      ca: path.proxy.caPem,
      name: 'api.test',
      alpn: BOTH,
    });
    for (let i = 0; i < 2; i += 1) {
      await client.send(head('GET / HTTP/1.1', `Host: ${path.authority}`));
      expect(errorOf((await client.readResponse()).head)).toBe('dns_failed');
    }
    expect(path.proxy.lookups).toHaveLength(2);
    await client[Symbol.asyncDispose]();
  });
});

describe('a client that leaves while its host is asked', () => {
  it.each(['fin', 'rst'])('frees the dial (%s)', async (way) => {
    const { promise: dialled, resolve } = Promise.withResolvers<Socket>();
    const silent = createServer(resolve).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    await using path = await createDataPath();
    const client = await path.plain();
    await client.openTunnel(`api.test:${port}`);
    const handshake = client.startTls({ ca: path.proxy.caPem, name: 'api.test', alpn: BOTH });
    handshake.catch(() => undefined);
    const socket = await dialled;
    const { promise: closed, resolve: onClose } = Promise.withResolvers<void>();
    socket.on('error', () => undefined).on('close', () => onClose());
    socket.resume();
    if (way === 'rst') client.reset();
    else client.end();
    await closed;
    expect(await path.proxy.record(0)).toMatchObject({ reason: 'client_gone', method: 'CONNECT' });
    silent.close();
  });
});

async function getVia(wire: WireClient, authority: string, protocol: string): Promise<string> {
  if (protocol === 'h2') {
    const client = await H2WireClient.over(wire, authority);
    return (await client.request(client.fields('/'))).text;
  }
  await wire.send(head('GET / HTTP/1.1', `Host: ${authority}`));
  return (await wire.readResponse()).text;
}

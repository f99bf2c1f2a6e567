// ALPN from end to end: the client gets what the upstream chose of the client's own list, the choice is cached, and a stale
// choice is detected.
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

  it.each(rows)(
    'a client offers %j, the upstream has %j: %j is offered to it, %s is chosen',
    async (...row) => {
      const [client, protocols, asked, chosen] = row;
      await using path = await createH2Path({ origin: { protocols } });
      const wire = await path.wire(client);
      expect((wire.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe(chosen);
      const text = await getVia(wire, path.authority, chosen);
      expect(text).toContain(secret);
      // Dialled once: the connection of the negotiation has carried the request.
      expect(path.origin.connections).toHaveLength(1);
      expect(path.origin.connections[0]?.offered).toEqual(asked);
    },
  );

  it('a client without ALPN gets HTTP/1.1, and its upstream is dialled for its request', async () => {
    await using path = await createH2Path();
    const wire = await path.wire([]);
    expect(path.origin.connections).toHaveLength(0);
    await getVia(wire, path.authority, 'http/1.1');
    expect(path.origin.connections[0]?.offered).toEqual(['http/1.1']);
  });
});

describe('the choice of an upstream is cached', () => {
  it('for the next client, whose handshake does not wait for a dial', async () => {
    await using path = await createH2Path();
    await getVia(await path.wire(BOTH), path.authority, 'h2');
    for (const connection of path.origin.connections) connection.destroy();
    const wire = await path.wire(BOTH);
    expect((wire.socket as { alpnProtocol?: unknown }).alpnProtocol).toBe('h2');
    expect(path.origin.connections).toHaveLength(1);
    await getVia(wire, path.authority, 'h2');
    expect(path.origin.connections).toHaveLength(2);
  });

  it('and an upstream that no longer speaks HTTP/2 makes the client connect again', async () => {
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

  it('and an upstream that no longer speaks HTTP/1.1 is a 502 that says so, once', async () => {
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

describe('a client that speaks only HTTP/2', () => {
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

describe('an upstream that cannot be dialled', () => {
  it.each([
    [BOTH, 'http/1.1'],
    [['h2'], 'h2'],
  ])('is reported by the first response, to a client that offers %j over %s', async (alpn, chosen) => {
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
    // It was dialled once: the response reports the dial of the negotiation.
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

describe('a client that leaves while its upstream is dialled', () => {
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

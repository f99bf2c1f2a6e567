// The limits on connections: in all, for streams, and for one address until a key was accepted.
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { noProxies, parseTrustedProxies } from '../../../src/platform/api/client-address.ts';
import { createConnectionLimits } from '../../../src/platform/api/connection-limits.ts';

const limits = { connections: 4, connectionsPerAddress: 2, streams: 1 };

type Connection = Duplex & { readonly remoteAddress: string | undefined };

function connectionFrom(remoteAddress: string | undefined): Connection {
  return Object.assign(new Duplex({ read: () => undefined }), { remoteAddress });
}

function open(trusted = noProxies) {
  const connections = createConnectionLimits(limits, trusted);
  return {
    ...{ connections, streams: () => connections.streams },
    accept(address: string | undefined) {
      const socket = connectionFrom(address);
      return { socket, isAccepted: connections.accept(socket) };
    },
  };
}

async function close(socket: Duplex): Promise<void> {
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.destroy();
  await closed;
}

describe('connections', () => {
  it('of one address are limited until a key was accepted on them', () => {
    const { connections, accept } = open();
    const [first] = [accept('192.0.2.1'), accept('192.0.2.1')];
    expect(accept('192.0.2.1').isAccepted).toBe(false);
    expect(accept('192.0.2.2').isAccepted).toBe(true);
    connections.authenticated(first.socket);
    // A second request on the same connection.
    connections.authenticated(first.socket);
    expect(accept('192.0.2.1').isAccepted).toBe(true);
    expect(accept('192.0.2.1').isAccepted).toBe(false);
  });

  it('of one IPv6 network are those of one address', () => {
    const { accept } = open();
    expect(accept('2001:db8::1').isAccepted && accept('2001:db8::2').isAccepted).toBe(true);
    expect(accept('2001:db8::3').isAccepted).toBe(false);
    expect(accept('2001:db8:0:1::1').isAccepted).toBe(true);
  });

  it('of a trusted proxy are limited only in all, for they come from many clients', () => {
    const { accept } = open(parseTrustedProxies(['10.0.0.0/8']));
    const found = Array.from({ length: 5 }, () => accept('10.0.0.1').isAccepted);
    expect(found).toEqual([true, true, true, true, false]);
  });

  it('without an address are not accepted: the audit log could not name their client', () => {
    expect(open().accept(undefined).isAccepted).toBe(false);
  });

  it('that close give way to others', async () => {
    const { accept } = open();
    const [first] = [accept('192.0.2.1'), accept('192.0.2.1')];
    await close(first.socket);
    expect([accept('192.0.2.1').isAccepted, accept('192.0.2.1').isAccepted]).toEqual([true, false]);
  });

  it('with a stream are not counted among the others, and are limited by themselves', async () => {
    const { connections, accept, streams } = open(parseTrustedProxies(['10.0.0.0/8']));
    const [first, second] = Array.from({ length: 4 }, () => accept('10.0.0.1'));
    const ended = Promise.withResolvers<void>();
    expect(connections.openStream(first!.socket, ended.promise)).toBe(true);
    expect(connections.openStream(second!.socket, ended.promise)).toBe(false);
    expect([streams(), accept('10.0.0.1').isAccepted, accept('10.0.0.1').isAccepted]).toEqual([
      1,
      true,
      false,
    ]);
    ended.resolve();
    await ended.promise;
    expect([streams(), accept('10.0.0.1').isAccepted]).toEqual([0, false]);
  });
});

// How many connections a server has: in all, of streams, and from one address that has not shown a valid key. Streams are
// counted apart, so that clients who only listen leave no client without a connection.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { groupOf } from '../identity/failure-limit.ts';
import { isTrustedPeer, type TrustedProxies } from './client-address.ts';
import type { ServerLimits } from './limits.ts';

export type ConnectionLimits = {
  /** The open streams. */
  readonly streams: number;
  /** False for a connection above a limit: it must be closed. */
  accept(socket: Duplex & Pick<Socket, 'remoteAddress'>): boolean;
  /** A valid key was accepted on it. */
  authenticated(socket: Duplex): void;
  /** Counts the stream until `closed` resolves; false above the limit. */
  openStream(socket: Duplex, closed: Promise<unknown>): boolean;
};

export function createConnectionLimits(
  limits: Pick<ServerLimits, 'connections' | 'connectionsPerAddress' | 'streams'>,
  trustedProxies: TrustedProxies,
  /** Of a unix socket: its clients have no address. */
  isLocal: boolean = false,
): ConnectionLimits {
  const open = new Set<Duplex>();
  const streaming = new Set<Duplex>();
  /** Of those whose address is limited. */
  const groups = new Map<Duplex, string>();
  const perGroup = new Map<string, number>();

  const release = (socket: Duplex): void => {
    const group = groups.get(socket);
    if (group === undefined) return;
    groups.delete(socket);
    const count = (perGroup.get(group) ?? 0) - 1;
    if (count > 0) perGroup.set(group, count);
    else perGroup.delete(group);
  };
  return {
    get streams() {
      return streaming.size;
    },
    accept(socket) {
      const { remoteAddress } = socket;
      if (open.size - streaming.size >= limits.connections) return false;
      if (remoteAddress === undefined && !isLocal) return false;
      if (remoteAddress !== undefined && !isTrustedPeer(remoteAddress, trustedProxies)) {
        const group = groupOf(remoteAddress);
        const count = perGroup.get(group) ?? 0;
        if (count >= limits.connectionsPerAddress) return false;
        perGroup.set(group, count + 1);
        groups.set(socket, group);
      }
      open.add(socket);
      socket.once('close', () => {
        open.delete(socket);
        release(socket);
      });
      return true;
    },
    authenticated: release,
    openStream(socket, closed) {
      if (streaming.size >= limits.streams) return false;
      streaming.add(socket);
      void closed.then(() => streaming.delete(socket));
      return true;
    },
  };
}

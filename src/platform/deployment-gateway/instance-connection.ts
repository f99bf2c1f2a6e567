// The connection to an instance, for one request: by its pinned socket and nothing else, so that no code of a deployment can have the
// gateway connect to another place.
import { connect, Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type Refusal, refuse } from '../../gateway/refusal.ts';
import type { Taken, Targets } from './target-table.ts';

/** Of a request that finds nothing ready, and of one whose instance has just ended. */
export const RETRY_MS = 1_000;
/** The queue of connections of the instance is full: as long as it is busy. */
const BUSY_MS = 25;

/** The instance is chosen when a request is authorized, and another one where that refuses the connection. */
export type Going = {
  taken: Taken | undefined;
  /** The request has ended: nothing is taken for it any more. */
  isOver: boolean;
  onLeave: (() => void) | undefined;
};

/** Nothing of the request was sent before there is a connection: it reaches one instance, once. */
export async function connectGoing(
  targets: Pick<Targets, 'takeInstead'>,
  deploymentId: string,
  going: Going,
  signal: AbortSignal,
): Promise<Socket | Refusal> {
  const tried = new Set<string>();
  for (;;) {
    const { taken } = going;
    if (taken === undefined) throw new Error('a request that was not authorized is to be sent');
    const connected = await connectTo(taken, signal);
    if (connected instanceof Socket || going.isOver) return connected;
    tried.add(taken.instance.id);
    const next = targets.takeInstead(deploymentId, taken, tried, going.onLeave);
    if (next === undefined) return connected;
    going.taken = next;
    taken.release();
  }
}

export async function connectTo(
  { instance, sent, refused }: Taken,
  signal: AbortSignal,
): Promise<Socket | Refusal> {
  for (;;) {
    try {
      const socket = await dial(instance.socketPath, signal);
      sent();
      return socket;
    } catch (error) {
      // The client has left, or the time is over: that says nothing about the instance.
      signal.throwIfAborted();
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EAGAIN') {
        refused();
        return refuse('target_unavailable', { message: ENDED, retryAfterMs: RETRY_MS });
      }
      await setTimeout(BUSY_MS, undefined, { signal });
    }
  }
}

const ENDED = 'The deployment does not respond now: it is started again';

function dial(path: string, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  // Each side of a WebSocket ends its half by itself.
  const socket = connect({ path, allowHalfOpen: true });
  const onAbort = (): void => void socket.destroy(new Error('not wanted any more'));
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('error', reject).once('connect', () => {
    signal.removeEventListener('abort', onAbort);
    socket.off('error', reject);
    resolve(socket);
  });
  return promise;
}

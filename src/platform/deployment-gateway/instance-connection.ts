// The connection to an instance, for one request: by its pinned socket and nothing else, so that no code of a deployment can have the
// gateway connect to another place.
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type Refusal, refuse } from '../../gateway/refusal.ts';
import type { Taken } from './target-table.ts';

/** Of a request that finds nothing ready, and of one whose instance has just ended. */
export const RETRY_MS = 1_000;
/** The queue of connections of the instance is full: as long as it is busy. */
const BUSY_MS = 25;

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

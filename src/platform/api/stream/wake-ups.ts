// Wakes the producer of a stream when something it shows may have changed: it reads the tables then. Many notifications in a
// row wake it once, so that no client that reads slowly makes the process keep them.
import type { Channel, Notifications } from '../../store/postgres/notifications.ts';

export type WakeUpOptions = {
  readonly channel: Channel;
  /** Of the call: the wake-ups end with it. */
  readonly signal: AbortSignal;
  /** Whether a notification is about what this stream shows. */
  isMeant?(payload: string): boolean;
};

/** The first one comes at once: what changed before the subscription sends no notification. */
export async function* wakeUps(
  notifications: Pick<Notifications, 'subscribe'>,
  { channel, signal, isMeant = () => true }: WakeUpOptions,
): AsyncGenerator<void, void, undefined> {
  let due = Promise.withResolvers<void>();
  due.resolve();
  const onDue = (): void => due.resolve();
  const unsubscribe = await notifications.subscribe(channel, {
    onMessage: (payload) => (isMeant(payload) ? onDue() : undefined),
    onMissed: onDue,
  });
  signal.addEventListener('abort', onDue);
  try {
    for (;;) {
      await due.promise;
      if (signal.aborted) return;
      due = Promise.withResolvers();
      yield;
    }
  } finally {
    signal.removeEventListener('abort', onDue);
    unsubscribe();
  }
}

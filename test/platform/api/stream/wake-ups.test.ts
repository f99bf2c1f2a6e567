// A producer is woken at once, after a notification that is meant for it, and after a loss; many in a row wake it once.
import { expect, it } from 'vitest';
import { wakeUps } from '../../../../src/platform/api/stream/wake-ups.ts';
import type { Notifications, Subscriber } from '../../../../src/platform/store/postgres/notifications.ts';

type Fake = Pick<Notifications, 'subscribe'> & { readonly subscribers: Set<Subscriber> };

function createFake(): Fake {
  const subscribers = new Set<Subscriber>();
  return {
    subscribers,
    async subscribe(_, subscriber) {
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
  };
}

/** How often the producer was woken, and what wakes it. */
async function open(isMeant?: (payload: string) => boolean) {
  const fake = createFake();
  const leaving = new AbortController();
  const wakes = wakeUps(fake, {
    ...{ channel: 'exports', signal: leaving.signal },
    ...(isMeant === undefined ? {} : { isMeant }),
  });
  await wakes.next();
  const [subscriber] = fake.subscribers;
  if (subscriber === undefined) throw new Error('nobody has subscribed');
  return { ...{ fake, leaving, wakes, subscriber }, ...createPending(wakes) };
}

/** Waits for one wake-up without blocking the test. */
function createPending(wakes: AsyncGenerator<void, void, undefined>) {
  let woken = 0;
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    wait: (): void => void wakes.next().then(({ done }) => done !== true && (woken += 1)),
    async count(): Promise<number> {
      await turn();
      return woken;
    },
  };
}

it('comes at once, and again with a notification', async () => {
  const { subscriber, wait, count } = await open();
  wait();
  expect(await count()).toBe(0);
  subscriber.onMessage('a');
  expect(await count()).toBe(1);
});

it('comes once for many notifications while the producer is busy', async () => {
  const { subscriber, wait, count } = await open();
  for (let at = 0; at < 3; at += 1) subscriber.onMessage('a');
  wait();
  wait();
  expect(await count()).toBe(1);
});

it('comes not with what is meant for others, and comes after a loss', async () => {
  const { subscriber, wait, count } = await open((payload) => payload === 'mine');
  wait();
  subscriber.onMessage('theirs');
  expect(await count()).toBe(0);
  subscriber.onMissed();
  expect(await count()).toBe(1);
});

it('ends with the signal, and unsubscribes', async () => {
  const { fake, leaving, wakes, wait } = await open();
  wait();
  leaving.abort(new Error('left'));
  expect(await wakes.next()).toEqual({ done: true, value: undefined });
  expect(fake.subscribers.size).toBe(0);
});

it('unsubscribes when the producer stops', async () => {
  const { fake, wakes } = await open();
  await wakes.return();
  expect(fake.subscribers.size).toBe(0);
});

// A message reaches every process once its transaction is committed, and who may have missed one learns of it.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { connectOnce } from '../../../../src/platform/store/database.ts';
import {
  type Channel,
  type Notifications,
  notify,
  openNotifications,
  type Subscriber,
} from '../../../../src/platform/store/postgres/notifications.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';

let database: TestDatabase;
const opened: Notifications[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(() => Promise.all(opened.splice(0).map((one) => one.close())));
afterAll(() => database[Symbol.asyncDispose]());

/** Keeps what arrives; `next` waits for it. */
function createInbox(): Subscriber & { next(): Promise<string> } {
  const arrived: string[] = [];
  const waiting: ((text: string) => void)[] = [];
  const take = (text: string): void => {
    const first = waiting.shift();
    if (first === undefined) arrived.push(text);
    else first(text);
  };
  return {
    onMessage: take,
    onMissed: () => take('(missed)'),
    next: () => {
      const first = arrived.shift();
      return first === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(first);
    },
  };
}

function open(onError: (error: unknown) => void = () => undefined): Notifications {
  const { connection } = database;
  const one = openNotifications({ connection, onError, onLost: onError });
  opened.push(one);
  return one;
}

const send = (payload: string, channel: Channel = 'exports'): Promise<void> =>
  database.store.write((trx) => notify(trx, channel, payload));

it('reaches the subscribers of its channel in every process, in order', async () => {
  const [one, two, other] = [createInbox(), createInbox(), createInbox()];
  await open().subscribe('exports', one);
  const process = open();
  await process.subscribe('exports', two);
  await process.subscribe('traces', other);
  await send('first');
  await send('elsewhere', 'traces');
  await send('second');
  for (const inbox of [one, two]) {
    expect(await inbox.next()).toBe('first');
    expect(await inbox.next()).toBe('second');
  }
  expect(await other.next()).toBe('elsewhere');
});

it('is sent with the commit, and not at all after a rollback', async () => {
  const inbox = createInbox();
  await open().subscribe('exports', inbox);
  const failed = database.store.write(async (trx) => {
    await notify(trx, 'exports', 'rolled back');
    throw new Error('failed');
  });
  await expect(failed).rejects.toThrow('failed');
  await send('committed');
  expect(await inbox.next()).toBe('committed');
});

it('has at most 7999 bytes', async () => {
  const inbox = createInbox();
  await open().subscribe('exports', inbox);
  const longest = `${'ä'.repeat(3_999)}x`;
  await send(longest);
  expect(await inbox.next()).toBe(longest);
  await expect(send(`${longest}x`)).rejects.toThrow(RangeError);
});

it('is received again after the connection was lost, and whoever subscribed learns of the loss', async () => {
  const lost = Promise.withResolvers<unknown>();
  const notifications = open(lost.resolve);
  const [one, other] = [createInbox(), createInbox()];
  await notifications.subscribe('exports', one);
  await notifications.subscribe('traces', other);
  await connectOnce(database.ownerConnection, (client) =>
    client.query(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where application_name = 'sallyport notifications' and datname = current_database()`),
  );
  expect(await lost.promise).toBeInstanceOf(Error);
  expect([await one.next(), await other.next()]).toEqual(['(missed)', '(missed)']);
  await send('after');
  expect(await one.next()).toBe('after');
});

it('that a subscriber cannot read ends neither the process nor what others get', async () => {
  const errors: unknown[] = [];
  const notifications = open((error) => void errors.push(error));
  const inbox = createInbox();
  const failed = new Error('unreadable');
  const onMessage = (): never => {
    throw failed;
  };
  await notifications.subscribe('exports', { onMessage, onMissed: () => undefined });
  await notifications.subscribe('exports', inbox);
  await send('{');
  expect([await inbox.next(), errors]).toEqual(['{', [failed]]);
});

it('no longer reaches who unsubscribed', async () => {
  const [one, other] = [createInbox(), createInbox()];
  const notifications = open();
  const unsubscribe = await notifications.subscribe('exports', one);
  await notifications.subscribe('exports', other);
  unsubscribe();
  await send('late');
  expect(await other.next()).toBe('late');
  one.onMissed();
  expect(await one.next()).toBe('(missed)');
});

it('needs no database to be closed', async () => {
  const failed = Promise.withResolvers<unknown>();
  const connection = { host: '/nonexistent', user: 'a', database: 'a' };
  const notifications = openNotifications({
    ...{ connection, onError: failed.resolve, onLost: failed.resolve },
  });
  const subscribed = notifications.subscribe('exports', createInbox());
  expect(await failed.promise).toMatchObject({ code: 'ENOENT' });
  await notifications.close();
  await subscribed;
});

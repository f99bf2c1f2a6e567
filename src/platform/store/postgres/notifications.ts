// Notifications between the processes of one database, by LISTEN and NOTIFY: one connection a process, opened with the first
// subscription. They wake somebody who then reads the tables. They are no record: what is sent while a connection is lost
// never arrives. A pooler in transaction mode cannot carry that connection.
import { setTimeout } from 'node:timers/promises';
import { type Connection, type Database, openListener } from '../database.ts';
import { sql } from '../sql.ts';

/** Every channel. A new one is added here, so that no text of a caller becomes a name. */
export const channels = [
  'agent_runs',
  'deployments',
  'exports',
  'proxy_profiles',
  'revocations',
  'sandboxes',
  'traces',
] as const;
export type Channel = (typeof channels)[number];

export type Subscriber = {
  onMessage(payload: string): void;
  /** The connection was lost and is there again: read what the messages in between would have said. */
  onMissed(): void;
};

export type Notifications = {
  /** Resolves once messages arrive, and waits for the database as long as it is away. Call the result to unsubscribe. */
  subscribe(channel: Channel, subscriber: Subscriber): Promise<() => void>;
  close(): Promise<void>;
};

/** PostgreSQL takes less than 8000 bytes. */
const MAX_PAYLOAD_BYTES = 7_999;

/**
 * Sent to every process, the own one too: with the commit of a transaction, otherwise at once. Throws a RangeError for a payload
 * that is too long.
 */
export async function notify(db: Database, channel: Channel, payload: string): Promise<void> {
  if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES)
    throw new RangeError(
      `a notification has at most ${MAX_PAYLOAD_BYTES} bytes: send an id, which the receiver looks up`,
    );
  await sql`select pg_notify(${nameOf(channel)}, ${payload})`.execute(db);
}

/**
 * Several, by a statement of their own that waits for no disk: they tell of what is committed. A NOTIFY within a transaction makes
 * all commits with one wait for each other, the disk included.
 */
export async function notifyAll(db: Database, channel: Channel, payloads: readonly string[]): Promise<void> {
  await sql`
    select set_config('synchronous_commit', 'off', true), pg_notify(${nameOf(channel)}, payload)
    from unnest(${payloads}::text[]) as payload`.execute(db);
}

/** Other programs may use the same database. */
function nameOf(channel: Channel): string {
  return `sallyport_${channel}`;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** A connection that the network has lost says nothing: it is asked. */
const CHECK_MS = 30_000;

export function openNotifications(options: {
  readonly connection: Connection;
  /** The connection was lost, or could not be opened, and is tried again. */
  onLost(error: unknown): void;
  /** A subscriber failed. */
  onError(error: unknown): void;
}): Notifications {
  const subscribers = new Map<string, Set<Subscriber>>(channels.map((one) => [nameOf(one), new Set()]));
  const closing = new AbortController();
  const { signal } = closing;
  const closed = new Promise((resolve) => signal.addEventListener('abort', resolve));
  const first = Promise.withResolvers<void>();
  let running: Promise<void> | undefined;

  const deliver = (name: string, payload: string): void => {
    for (const { onMessage } of subscribers.get(name) ?? [])
      attempt(() => onMessage(payload), options.onError);
  };
  /** Returns when the connection ended, or throws what ended it. */
  const listen = async (onListening: () => void): Promise<void> => {
    await using listener = await openListener(options.connection, deliver);
    const ended = Promise.race([listener.ended, closed]).then(() => true);
    for (const name of subscribers.keys()) await listener.run(`listen ${name}`);
    onListening();
    const pause = (): Promise<boolean> => setTimeout(CHECK_MS, false, { ref: false });
    while (!(await Promise.race([ended, pause()]))) await listener.run('select 1');
    if (!signal.aborted) throw await listener.ended;
  };
  const run = async (): Promise<void> => {
    let isAgain = false;
    for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(2 * retryMs, MAX_RETRY_MS)) {
      try {
        await listen(() => {
          retryMs = FIRST_RETRY_MS;
          const all = isAgain ? [...subscribers.values()].flatMap((some) => [...some]) : [];
          isAgain = true;
          first.resolve();
          for (const { onMissed } of all) attempt(onMissed, options.onError);
        });
      } catch (error) {
        if (signal.aborted) return;
        options.onLost(error);
      }
      await setTimeout(retryMs, undefined, { signal }).catch(() => undefined);
    }
  };
  return {
    async subscribe(channel, subscriber) {
      const known = subscribers.get(nameOf(channel));
      known?.add(subscriber);
      running ??= run();
      // One who comes while the connection is lost learns with the others that it is there again.
      await Promise.race([first.promise, closed]);
      return () => void known?.delete(subscriber);
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** Anybody who may connect to the database can send anything: an error must not end the process, nor reach other subscribers. */
function attempt(call: () => void, onError: (error: unknown) => void): void {
  try {
    call();
  } catch (error) {
    onError(error);
  }
}

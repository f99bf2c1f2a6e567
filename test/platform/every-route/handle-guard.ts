// Finds a `handle` that does anything but call the database. While one is pending, a statement must be under way whenever
// the event loop turns: a handle that waits for something else holds a transaction, a connection and a turn meanwhile.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Socket } from 'node:net';
import { Client, Pool } from 'pg';
import type { Route } from '../../../src/platform/api/route.ts';

export type HandleGuard = Disposable & {
  /** What the handles did besides calling the database, in order. */
  readonly found: readonly string[];
  wrap(route: Route): Route;
};

/** One at a time in a process. Requests must be sent one after the other: statements are counted for all of them. */
export function createHandleGuard(): HandleGuard {
  const found: string[] = [];
  const handling = new AsyncLocalStorage<string>();
  let statements = 0;
  const counted = <T>(work: T): T => {
    const ended = work instanceof Promise ? work : isQuery(work) ? endOf(work) : undefined;
    if (ended === undefined) return work;
    statements += 1;
    void ended.catch(() => undefined).finally(() => (statements -= 1));
    return work;
  };
  const originals = { query: Client.prototype.query, connect: Pool.prototype.connect };
  const { connect: connectSocket } = Socket.prototype;
  const { fetch } = globalThis;
  Client.prototype.query = function (this: Client, ...args: never) {
    return counted(originals.query.apply(this, args)) as never;
  } as typeof originals.query;
  Pool.prototype.connect = function (this: Pool, ...args: never) {
    // Connections of the pool are opened outside of the handle that waits for one.
    return counted(handling.exit(() => originals.connect.apply(this, args))) as never;
  } as typeof originals.connect;
  Socket.prototype.connect = function (this: Socket, ...args: never) {
    const title = handling.getStore();
    if (title !== undefined) found.push(`${title} opens a connection`);
    return connectSocket.apply(this, args);
  } as typeof connectSocket;
  globalThis.fetch = (...args) => {
    const title = handling.getStore();
    if (title !== undefined) found.push(`${title} calls fetch`);
    return fetch(...args);
  };

  const watch = (title: string, work: Promise<unknown>): void => {
    let isPending = true;
    void work.catch(() => undefined).finally(() => (isPending = false));
    const turn = (): void => {
      if (!isPending) return;
      if (statements > 0) return void setImmediate(turn);
      found.push(`${title} waits for something else than the database`);
    };
    setImmediate(turn);
  };
  return {
    found,
    wrap(route) {
      const title = `${route.method} ${route.path}`;
      return {
        ...route,
        handle(call, prepared) {
          const work = handling.run(title, () => route.handle(call, prepared));
          handling.exit(() => watch(title, work));
          return work;
        },
      };
    },
    [Symbol.dispose]() {
      Object.assign(Client.prototype, { query: originals.query });
      Object.assign(Pool.prototype, { connect: originals.connect });
      Socket.prototype.connect = connectSocket;
      globalThis.fetch = fetch;
    },
  };
}

/** A query that reports its end by a callback. */
type Query = Record<'handleReadyForQuery' | 'handleError', (...given: unknown[]) => void>;

function isQuery(work: unknown): work is Query {
  return typeof work === 'object' && work !== null && 'handleReadyForQuery' in work && 'handleError' in work;
}

/** Resolves before the query calls back. */
function endOf(query: Query): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const method of ['handleReadyForQuery', 'handleError'] as const) {
    const original = query[method];
    query[method] = function (this: Query, ...given) {
      resolve();
      original.apply(this, given);
    };
  }
  return promise;
}

// What a saver puts goes to the server, where a graph waits for none of it, a moment later: together with what follows, which
// costs the database one commit instead of many.
import type { CallContext } from '../method.ts';
import type { ServerCalls } from '../protocol/calls.ts';
import type { Typed } from '../protocol/messages.ts';

export type Put = ServerCalls['checkpoint.put']['params'];
export type PutWrites = ServerCalls['checkpoint.put_writes']['params'];

export type PutQueue = {
  /** Resolve when the server has stored it. */
  put(params: Put): Promise<void>;
  putWrites(params: PutWrites): Promise<void>;
  /** Sends what waits. */
  flush(): void;
  /** From now on nothing waits; until the function that it returns is called. */
  hurry(): () => void;
};

/** What is sent at once, however little time has passed: the server reads nothing else meanwhile. */
const MAX_CHARS = 256 * 1024;

type Waiting = {
  readonly threadId: string;
  readonly puts: Put[];
  readonly putWrites: PutWrites[];
  chars: number;
};

/** `delayMs`: how long something may wait; 0 where the graph waits for it. */
export function createPutQueue(callServer: CallContext['callServer'], delayMs: number): PutQueue {
  let waiting: (Waiting & { readonly stored: Promise<void>; send(): void }) | undefined;
  let hurried = 0;
  const flush = (): void => {
    const batch = waiting;
    waiting = undefined;
    batch?.send();
  };
  const batchOf = (threadId: string) => {
    if (waiting !== undefined && waiting.threadId !== threadId) flush();
    if (waiting !== undefined) return waiting;
    const batch: Waiting = { threadId, puts: [], putWrites: [], chars: 0 };
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = hurried > 0 ? undefined : setTimeout(flush, delayMs);
    const send = (): void => {
      clearTimeout(timer);
      resolve(sendBatch(callServer, batch));
    };
    waiting = Object.assign(batch, { stored: promise, send });
    return waiting;
  };
  const add = (threadId: string, chars: number, fill: (batch: Waiting) => void): Promise<void> => {
    const batch = batchOf(threadId);
    fill(batch);
    batch.chars += chars;
    if (hurried > 0 || delayMs === 0 || batch.chars > MAX_CHARS) flush();
    return batch.stored;
  };
  return {
    put: (params) => add(params.thread_id, charsOfPut(params), ({ puts }) => puts.push(params)),
    putWrites: (params) =>
      add(params.thread_id, charsOf(params.writes), ({ putWrites }) => putWrites.push(params)),
    flush,
    hurry() {
      hurried += 1;
      flush();
      return () => void (hurried -= 1);
    },
  };
}

async function sendBatch(
  callServer: CallContext['callServer'],
  { threadId, puts, putWrites }: Waiting,
): Promise<void> {
  const [put, ...others] = puts;
  const [writes] = putWrites;
  if (put !== undefined && others.length === 0 && writes === undefined)
    await callServer('checkpoint.put', put);
  else if (put === undefined && writes !== undefined && putWrites.length === 1)
    await callServer('checkpoint.put_writes', writes);
  else
    await callServer('checkpoint.put_all', {
      thread_id: threadId,
      puts: puts.map(withoutThread),
      put_writes: putWrites.map(withoutThread),
    });
}

function withoutThread<T extends { readonly thread_id: string }>(params: T): Omit<T, 'thread_id'> {
  const { thread_id: _, ...rest } = params;
  return rest;
}

function charsOfPut({ checkpoint, metadata, values }: Put): number {
  return charsOf([{ value: checkpoint }, { value: metadata }, ...values]);
}

function charsOf(written: readonly { readonly value: Typed }[]): number {
  return written.reduce((sum, { value }) => sum + lengthOf(value), 0);
}

function lengthOf(value: Typed): number {
  return (value.text ?? value.base64 ?? '').length;
}

// Server-sent events: frames, ids, a heartbeat while nothing happens, and an end from which a client can go on.
import type { StreamError } from '../errors.ts';
import { PieceSource } from './piece-source.ts';

export type ServerEvent = {
  /** The type of the event; `message` for clients that get none. */
  readonly event?: string;
  /** Sent as JSON in one line. */
  readonly data: unknown;
  /** Sent back by a client that reconnects, as Last-Event-ID. */
  readonly id?: string;
};

export type EventStreamOptions = {
  /** Aborts when the client left, when the server drains, or with `ended`. */
  readonly signal: AbortSignal;
  /** Whether the signal aborted because the server drains: the client must reconnect. */
  isDraining(): boolean;
  /** Aborts when the stream must end; its reason is an error for the client. */
  readonly ended?: AbortSignal;
  /** Of the request: what a client that reconnects has seen. */
  readonly lastEventId: string | undefined;
  readonly heartbeatMs?: number;
  /** What a client may know of an error of the producer; the status was sent before it. */
  onError(error: unknown): StreamError;
};

// A comment of one line feed: some clients take the empty line after a comment for an event.
const HEARTBEAT: Uint8Array = Buffer.from(': heartbeat\n');
const HEARTBEAT_MS = 5_000;

/** Ends when the events end, with an event `error` when they fail, and with an event `reconnect` when the server drains. */
export async function* toEventStream(
  events: AsyncIterable<ServerEvent>,
  { signal, isDraining, ended, lastEventId, heartbeatMs = HEARTBEAT_MS, onError }: EventStreamOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  using source = new PieceSource(events, { idleMs: heartbeatMs, signal });
  let lastId = lastEventId;
  for (;;) {
    let frame: Uint8Array;
    try {
      const found = await source.next();
      if (found === 'ended') return;
      if (found === 'aborted') {
        ended?.throwIfAborted();
        if (isDraining()) yield formatEvent(toReconnect(lastId));
        return;
      }
      frame = found === 'idle' ? HEARTBEAT : formatEvent(found.piece);
      if (found !== 'idle') lastId = found.piece.id ?? lastId;
    } catch (error) {
      return void (yield formatEvent({ event: 'error', data: onError(error) }));
    }
    yield frame;
  }
}

/** Throws an Error for an event whose type or id would end its line: that is a bug. */
export function formatEvent({ event, data, id }: ServerEvent): Uint8Array {
  for (const text of [event, id])
    if (text !== undefined && /[\r\n\0]/.test(text))
      throw new Error('an event has a line break in its type or id');
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    `data: ${JSON.stringify(data) ?? 'null'}`,
    ...(id === undefined ? [] : [`id: ${id}`]),
  ];
  return Buffer.from(`${lines.join('\n')}\n\n`);
}

function toReconnect(lastId: string | undefined): ServerEvent {
  const data = { last_event_id: lastId ?? null };
  return { event: 'reconnect', data, ...(lastId === undefined ? {} : { id: lastId }) };
}

// Server-sent events: frames, ids, a heartbeat while nothing happens, and an end from which a client can go on.
import { EndedEarly } from '../../../base/http/http-response.ts';
import type { StreamError } from '../errors.ts';
import { PieceSource } from './piece-source.ts';

export type ServerEvent = {
  /** The type of the event; `message` for clients that get none. */
  readonly event?: string;
  /** Sent as JSON in one line. */
  readonly data?: unknown;
  /** In place of `data`: JSON that is sent as it is, and read by nobody here. */
  readonly text?: string;
  /** Sent back by a client that reconnects, as Last-Event-ID. */
  readonly id?: string;
};

/** Events that are ready together leave in one write. */
export type ServerEvents = ServerEvent | readonly ServerEvent[];

export type EventStreamOptions = {
  /** Aborts when the client left, when the server drains, or with `ended`. */
  readonly signal: AbortSignal;
  /** Whether the signal aborted because the server drains: the client must reconnect. */
  isDraining(): boolean;
  /** `reconnect` when absent. */
  readonly onDrain?: 'reconnect' | 'cut';
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

/**
 * Ends when the events end, with an event `error` when they fail, and with an event `reconnect` when the server drains. Rejects
 * with an EndedEarly, of the producer or on drain, where the connection is to be cut.
 */
export async function* toEventStream(
  events: AsyncIterable<ServerEvents>,
  options: EventStreamOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { signal, ended, lastEventId, heartbeatMs = HEARTBEAT_MS, onError } = options;
  using source = new PieceSource(events, { idleMs: heartbeatMs, signal });
  let lastId = lastEventId;
  for (;;) {
    let frame: Uint8Array;
    try {
      const found = await source.next();
      if (found === 'ended') return;
      if (found === 'aborted') {
        ended?.throwIfAborted();
        if (!options.isDraining()) return;
        if (options.onDrain === 'cut') throw new EndedEarly('This process is shutting down');
        return void (yield formatEvent(toReconnect(lastId)));
      }
      frame = found === 'idle' ? HEARTBEAT : formatEvent(found.piece);
      if (found !== 'idle') lastId = lastIdOf(found.piece) ?? lastId;
    } catch (error) {
      if (error instanceof EndedEarly) throw error;
      return void (yield formatEvent({ event: 'error', data: onError(error) }));
    }
    yield frame;
  }
}

/** Throws an Error for an event whose type or id would end its line: that is a bug. */
export function formatEvent(events: ServerEvents): Uint8Array {
  if (!isBatch(events)) return Buffer.from(toFrame(events));
  let frames = '';
  for (const event of events) frames += toFrame(event);
  return Buffer.from(frames);
}

function isBatch(events: ServerEvents): events is readonly ServerEvent[] {
  return Array.isArray(events);
}

const LINE_END = /[\r\n\0]/;

function toFrame({ event, data, text, id }: ServerEvent): string {
  if ((event !== undefined && LINE_END.test(event)) || (id !== undefined && LINE_END.test(id)))
    throw new Error('an event has a line break in its type or id');
  // A line break in JSON is space between its tokens.
  const json = text === undefined ? (JSON.stringify(data) ?? 'null') : text.replace(/[\r\n]+/g, ' ');
  const type = event === undefined ? '' : `event: ${event}\n`;
  return `${type}data: ${json}\n${id === undefined ? '' : `id: ${id}\n`}\n`;
}

function lastIdOf(events: ServerEvents): string | undefined {
  return isBatch(events) ? events.findLast(({ id }) => id !== undefined)?.id : events.id;
}

function toReconnect(lastId: string | undefined): ServerEvent {
  const data = { last_event_id: lastId ?? null };
  return { event: 'reconnect', data, ...(lastId === undefined ? {} : { id: lastId }) };
}

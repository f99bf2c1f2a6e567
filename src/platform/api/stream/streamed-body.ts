// The body of a streamed response: what a route produces after the commit, for as long as its client reads it.
import { DomainError } from '../../../base/domain-error.ts';
import { EndedEarly, type HttpResponse } from '../../../base/http/http-response.ts';
import { type ApiRequest, signalOf } from '../api-request.ts';
import type { StreamError } from '../errors.ts';
import { type ServerEvents, toEventStream } from './event-stream.ts';
import { PieceSource } from './piece-source.ts';
import type { StreamResponse } from '../responses.ts';
import type { Streaming } from '../route.ts';

const EVENT_FIELDS = {
  // nginx and others buffer responses unless they are asked not to.
  'X-Accel-Buffering': 'no',
};

/** How long a producer of bytes may be silent. Events have a heartbeat instead. */
const SILENCE_MS = 60_000;

/** What a route produces, as its kind of stream is sent. */
export type Produced = {
  produce(call: Omit<Streaming, 'db'>): AsyncIterable<unknown>;
  /** Called when the body begins to be sent, with what ends it; undone when it has ended. */
  open(end: (reason: Error) => void): Disposable;
  /** The code and the text of an error, for a client whose response has begun. */
  onError(error: unknown): StreamError;
};

export function streamBody(
  { streamType, pieces, silenceMs = SILENCE_MS, onDrain = 'reconnect' }: StreamResponse,
  request: ApiRequest,
  { produce, open, onError }: Produced,
): Required<Pick<HttpResponse, 'body' | 'fields'>> {
  const { draining, head } = request;
  const left = request.left();
  const ended = new AbortController();
  const signal = AbortSignal.any([signalOf(request), ended.signal]);
  async function* opened(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    using _ = open((reason) => ended.abort(reason));
    yield* body;
  }
  const lastEventId = head.field('last-event-id');
  // A response to HEAD has no body, so nothing is started for it.
  const produced = head.method === 'HEAD' ? nothing() : produce({ signal, lastEventId });
  if (pieces === 'bytes')
    return {
      fields: { 'Content-Type': streamType },
      body: opened(
        toBytes(produced as AsyncIterable<Uint8Array>, {
          ...{ idleMs: silenceMs, signal: AbortSignal.any([left, ended.signal]) },
          ended: ended.signal,
        }),
      ),
    };
  const isDraining = (): boolean => draining.aborted && !left.aborted;
  const body = toEventStream(produced as AsyncIterable<ServerEvents>, {
    ...{ signal, isDraining, onDrain, ended: ended.signal, lastEventId, onError },
  });
  return { fields: { 'Content-Type': streamType, ...EVENT_FIELDS }, body: opened(body) };
}

async function* nothing(): AsyncGenerator<never, void, undefined> {}

/**
 * Rejects when the producer fails or is silent, or the stream is ended: the connection is cut then, so that no client takes a
 * part for the whole.
 */
async function* toBytes(
  pieces: AsyncIterable<Uint8Array>,
  limits: { readonly idleMs: number; readonly signal: AbortSignal; readonly ended: AbortSignal },
): AsyncGenerator<Uint8Array, void, undefined> {
  using source = new PieceSource(pieces, limits);
  for (;;) {
    const found = await source.next();
    // Whoever ended it has logged why.
    if (found === 'aborted' && limits.ended.aborted) throw new EndedEarly(limits.ended.reason.message);
    if (found === 'ended' || found === 'aborted') return;
    if (found === 'idle')
      throw new DomainError('unavailable', 'The producer of a response was silent for too long');
    yield found.piece;
  }
}

// A response as data, and how it is written: with the fields that every response has, no faster than the client reads,
// and so that the client can read it even where its request was not read to the end.
import type { IncomingMessage, ServerResponse } from 'node:http';

export type HttpResponse = {
  readonly status: number;
  readonly fields?: Readonly<Record<string, string>>;
  /** Values of Set-Cookie, which cannot be joined to one. */
  readonly cookies?: readonly string[];
  /** A stream is sent in chunks, piece by piece; leaving it early calls its `return`. */
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** The connection ends after this response. */
  readonly isLast?: boolean;
  /** How long the client may take to read one piece, where that is not the limit of the server. */
  readonly idleMs?: number;
  /** The same once the server drains, for a body without an end: nobody who reads nothing may delay the end of the process. */
  readonly drainingIdleMs?: number;
};

/** Thrown by a streamed body that was ended on purpose before it was whole: the connection is cut, and nothing failed. */
export class EndedEarly extends Error {
  override readonly name: string = 'EndedEarly';
}

/** How long the client may take to read one piece; a body that is no stream is one piece. */
type IdleLimits = {
  readonly idleMs: number;
  readonly draining?: { readonly signal: AbortSignal; readonly idleMs: number };
};

export type SendOptions = IdleLimits & {
  readonly requestId: string;
  readonly isLast: boolean;
  /** The last byte was handed to the operating system. */
  onWritten(): void;
};

/** JSON with its type. `undefined` is no body. */
export function jsonResponse(
  status: number,
  value: unknown,
  fields: Readonly<Record<string, string>> = {},
): HttpResponse {
  if (value === undefined) return { status, fields };
  return {
    status,
    fields: { 'Content-Type': 'application/json', ...fields },
    body: `${JSON.stringify(value)}\n`,
  };
}

/** The body of every error but a list of issues: `detail` for people, `code` for programs. */
export function errorResponse(
  status: number,
  code: string,
  detail: string,
  fields?: Readonly<Record<string, string>>,
): HttpResponse {
  return jsonResponse(status, { detail, code }, fields);
}

/** An error that an API may send, for its documentation. */
export type ErrorCode = { readonly code: string; readonly status: number; readonly meaning: string };

export function listErrors(
  errors: Readonly<Record<string, readonly [status: number, meaning: string]>>,
): readonly ErrorCode[] {
  return Object.entries(errors).map(([code, [status, meaning]]) => ({ code, status, meaning }));
}

/** Seconds, rounded up: a client that comes back too early is rejected again. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) };
}

/** Rejects with what a streamed body throws; the response is cut off then, and its connection must be. */
export async function sendResponse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  response: HttpResponse,
  options: SendOptions,
): Promise<void> {
  const { status, body, fields, cookies = [] } = response;
  if (outgoing.destroyed) return;
  const isStream = body !== undefined && typeof body === 'object' && Symbol.asyncIterator in body;
  // Nothing can follow a request of which some is still to come, and nobody will read it: the connection ends.
  outgoing.writeHead(status, {
    ...commonFields(options.requestId),
    ...fields,
    ...(cookies.length > 0 && { 'Set-Cookie': [...cookies] }),
    ...(body === undefined || isStream ? {} : { 'Content-Length': Buffer.byteLength(body) }),
    ...(options.isLast || response.isLast || !incoming.complete ? { Connection: 'close' } : {}),
  });
  const last = isStream ? undefined : body;
  // A client learns that its stream is open, also while there is nothing to send.
  if (isStream) outgoing.flushHeaders();
  if (isStream && incoming.method !== 'HEAD') await sendStream(incoming, outgoing, body, options);
  if (outgoing.destroyed) return;
  if (incoming.complete) outgoing.end(last, options.onWritten);
  else {
    outgoing.write(last ?? '', (error) => {
      if (!error) options.onWritten();
    });
    endLingering(incoming, outgoing);
  }
  // Most responses are handed to the operating system at once.
  if (incoming.complete && outgoing.writableLength === 0) return;
  outgoing.once('close', limitIdle(incoming, options));
}

/** The fields that every response has: no cache stores it, no browser guesses its type, and its request has a name. */
export function commonFields(requestId: string): Readonly<Record<string, string>> {
  return {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
  };
}

/** A client that reads slowly slows the producer down; one that stops reading loses its connection. */
async function sendStream(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  pieces: AsyncIterable<Uint8Array>,
  limits: IdleLimits,
): Promise<void> {
  for await (const piece of pieces) {
    if (outgoing.destroyed) return;
    if (outgoing.write(piece)) continue;
    const { promise, resolve } = Promise.withResolvers<void>();
    const endLimit = limitIdle(incoming, limits);
    outgoing.once('drain', resolve).once('close', resolve);
    await promise;
    endLimit();
    outgoing.off('drain', resolve).off('close', resolve);
  }
}

/** Of the socket, not the response: one that waits behind another on its connection has no socket yet. Returns what ends the limit. */
function limitIdle({ socket }: IncomingMessage, { idleMs, draining }: IdleLimits): () => void {
  const limit = (ms: number): NodeJS.Timeout => setTimeout(() => socket.destroy(), ms).unref();
  const isDraining = draining?.signal.aborted === true;
  let timer = limit(isDraining ? draining.idleMs : idleMs);
  if (draining === undefined || isDraining) return () => clearTimeout(timer);
  const onDraining = (): void => {
    clearTimeout(timer);
    timer = limit(draining.idleMs);
  };
  draining.signal.addEventListener('abort', onDraining);
  return () => {
    clearTimeout(timer);
    draining.signal.removeEventListener('abort', onDraining);
  };
}

const LINGER_MS = 500;
const LINGER_BYTES = 4 * 1024 * 1024;
/** That a piece counts for at least: one of a byte takes as long to discard. */
const PIECE_BYTES = 1024;

/**
 * Ends a response whose request was not read to its end. A socket that is closed over unread bytes is reset, and a reset
 * can overtake the response: what still arrives is discarded for a while (RFC 9112 §9.6).
 */
function endLingering(incoming: IncomingMessage, outgoing: ServerResponse): void {
  let left = LINGER_BYTES;
  const end = (): void => void outgoing.end();
  const timer = setTimeout(end, LINGER_MS);
  outgoing.once('close', () => clearTimeout(timer));
  incoming.on('data', (piece: Buffer) => {
    left -= Math.max(PIECE_BYTES, piece.length);
    if (left < 0) end();
  });
  incoming.once('end', end).once('close', end).once('error', end);
  incoming.resume();
}

// The successful responses of a route: one schema for each status, and the outcome of a handler that fits them. A body of
// another shape does not compile.
import type { z } from '../../base/schema.ts';
import type { MappedList } from './json-text.ts';
import type { ServerEvents } from './stream/event-stream.ts';

/** 501: of a route that every client of its contract may call and that this version does not have. */
export type SuccessStatus = 200 | 201 | 202 | 204 | 207 | 303 | 501;

/** Text that the handler serializes itself, such as HTML. `schema` describes it where it is JSON. */
export type TextResponse = { readonly textType: string; readonly schema?: z.ZodType };

/** A body that the route produces piece by piece after the commit, from a source that its handler returns. */
export type StreamResponse<Source = unknown, Piece = unknown> = {
  readonly streamType: string;
  readonly pieces: 'events' | 'bytes';
  /** Of bytes that are JSON. */
  readonly schema?: z.ZodType;
  /** How long the producer of bytes may be silent. */
  readonly silenceMs?: number;
  /** Of what the process holds for each of them while its client reads: counted with responses that are not read. */
  readonly heldBytes?: number;
  /** How a stream of events ends when the server drains: by an event `reconnect`, or its connection is cut. */
  readonly onDrain?: 'reconnect' | 'cut';
  /** For the compiler alone. */
  readonly of?: readonly [Source, Piece];
};

/**
 * Server-sent events. A heartbeat, the end on drain and the end on an error are made for every one of them. Clients that reconnect
 * by themselves, and take every other end for the end of what they read, want it to be cut on drain.
 */
export function eventStream<Source = undefined>(
  traits: Pick<StreamResponse, 'onDrain'> = {},
): StreamResponse<Source, ServerEvents> {
  return { streamType: 'text/event-stream', pieces: 'events', ...traits };
}

export function byteStream<Source = undefined>(
  streamType: string,
  traits: Pick<StreamResponse, 'silenceMs' | 'heldBytes' | 'schema'> = {},
): StreamResponse<Source, Uint8Array> {
  return { streamType, pieces: 'bytes', ...traits };
}

/** JSON by its schema, text of a type, a stream, or null: no body. */
export type ResponseSchema = z.ZodType | TextResponse | StreamResponse | null;

export type Responses = Readonly<Partial<Record<SuccessStatus, ResponseSchema>>>;

/** What JSON.stringify turns into `T`: a Date becomes a string, and the members of a list may be made then. */
export type JsonSource<T> = T extends string
  ? string extends T
    ? T | Date
    : T
  : T extends readonly (infer Member)[]
    ? readonly JsonSource<Member>[] | MappedList<JsonSource<Member>>
    : T extends object
      ? { readonly [Key in keyof T]: JsonSource<T[Key]> }
      : T;

type BodyOf<A> = A extends null
  ? { readonly body?: undefined }
  : A extends TextResponse
    ? { readonly body: string }
    : A extends StreamResponse<infer Source, unknown>
      ? undefined extends Source
        ? { readonly source?: Source }
        : { readonly source: Source }
      : A extends z.ZodType
        ? { readonly body: JsonSource<z.output<A>> }
        : never;

/** A route with one response need not repeat its status. */
type StatusOf<R extends Responses, S> = [keyof R] extends [S]
  ? { readonly status?: S }
  : { readonly status: S };

type Extras = {
  readonly fields?: Readonly<Record<string, string>>;
  /** Ids of the affected resources, for the audit log. */
  readonly resources?: readonly string[];
  /** Their names in the same order, where callers choose them: never a value. */
  readonly resourceNames?: readonly string[];
  /** The workspace that it created, for the audit log. */
  readonly workspaceId?: string;
};

/** What a handler returns: one of the responses of its route. */
export type OutcomeOf<R extends Responses> = {
  readonly [S in keyof R]: Extras & StatusOf<R, S> & BodyOf<R[S]>;
}[keyof R];

type SourceIn<A> = A extends StreamResponse<infer Source, unknown> ? Source : never;
type PieceIn<A> = A extends StreamResponse<unknown, infer Piece> ? Piece : never;

/** What the streams of a route are produced from, and of; never where it has no stream. */
export type SourceOf<R extends Responses> = SourceIn<R[keyof R]>;
export type PieceOf<R extends Responses> = PieceIn<R[keyof R]>;

/** The outcome of a route whose responses are not known. */
export type Outcome = Extras & {
  readonly status?: SuccessStatus;
  readonly body?: unknown;
  readonly source?: unknown;
};

/** The statuses of the responses, in ascending order. */
export function statusesOf(responses: Responses): readonly SuccessStatus[] {
  return Object.keys(responses).map(Number) as SuccessStatus[];
}

/** What every request of a route would find out again. */
type Known = { readonly statuses: readonly SuccessStatus[]; readonly heldBytes: number | undefined };

const known = new WeakMap<Responses, Known>();

function knownOf(responses: Responses): Known {
  const found = known.get(responses);
  if (found !== undefined) return found;
  const streams = Object.values(responses).filter(isStreamResponse);
  const made = {
    statuses: statusesOf(responses),
    heldBytes: streams.length === 0 ? undefined : Math.max(...streams.map(({ heldBytes = 0 }) => heldBytes)),
  };
  known.set(responses, made);
  return made;
}

/** The response of an outcome. Throws an Error where the outcome must name its status and does not. */
export function chooseResponse(
  responses: Responses,
  { status }: Outcome,
): { readonly status: SuccessStatus; readonly response: ResponseSchema } {
  const [only, ...others] = knownOf(responses).statuses;
  const chosen = status ?? (others.length === 0 ? only : undefined);
  const response = chosen === undefined ? undefined : responses[chosen];
  if (chosen === undefined || response === undefined)
    throw new Error('the outcome has none of the responses of its route');
  return { status: chosen, response };
}

export function isTextResponse(response: ResponseSchema): response is TextResponse {
  return response !== null && 'textType' in response;
}

export function isStreamResponse(response: ResponseSchema): response is StreamResponse {
  return response !== null && 'streamType' in response;
}

/** What is held for a stream of the route while its client reads; undefined where no response is a stream. */
export function heldBytesOf(responses: Responses): number | undefined {
  return knownOf(responses).heldBytes;
}

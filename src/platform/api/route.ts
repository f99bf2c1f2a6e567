// A route as data: who may call it, what it reads, how it responds, what it leaves in the audit log, and its phases. The
// pipeline around it (access, parsing, transaction, audit) is the same for all, so that a new route cannot forget a part.
import type { z } from '../../base/schema.ts';
import type { Operation } from '../audit/operations.ts';
import type { Database, Store, Transaction } from '../store/database.ts';
import type { Access, Grant } from './access.ts';
import type { BodyRules } from './body/json-part.ts';
import type { Upload } from './body/upload.ts';
import type { Cors } from './contract/cors.ts';
import type { ErrorFormat } from './contract/error-formats.ts';
import type { Outcome, OutcomeOf, PieceOf, Responses, SourceOf } from './responses.ts';
import type { RunningLimit } from './route-limits.ts';

/** A tracked operation of the audit log, or the reason why there is none. */
export type Tracking =
  | { readonly operation: Operation }
  | {
      readonly untracked: string;
      /** Its `handle` gets a transaction all the same. */
      readonly inTransaction?: true;
    };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The parts of a request, by schema. A part without a schema is rejected when it is sent. */
export type RequestParts = {
  /** Of the path: every name in braces. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  /** Of JSON. */
  readonly body?: z.ZodType;
  /** How its JSON is read; strictly when absent. */
  readonly bodyRules?: BodyRules;
  /** In place of `body`: a stream for `prepare`. */
  readonly upload?: Upload;
  /** What becomes of names in a query that its schema does not have; `refuse` when absent. */
  readonly unknownNames?: 'pass' | 'refuse';
};

/** What a route says besides its access, its responses and its phases. */
export type RouteFacts = {
  readonly method: Method;
  /** `/v2/listeners/{listener_id}` */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** Statuses that it may have besides 401, 403, 422, 429 and 5xx; none when absent. */
  readonly failures?: readonly (404 | 408 | 409 | 400 | 401 | 403 | 413)[];
  /** Other paths with the same response, made by `mount`; OpenAPI, metrics and the log name `path`. */
  readonly aliases?: readonly string[];
  /** The format of its errors; `problemErrors` when absent. */
  readonly errors?: ErrorFormat;
  /** Whose pages may call it; without it, those of its own origin alone. */
  readonly cors?: Cors;
  readonly limits?: { readonly running?: RunningLimit };
  /**
   * It takes access away. It must be tracked: its transaction begins with the lock of the organization, and with its commit the open
   * streams of the organization are confirmed again, in all processes.
   */
  readonly revokes?: true;
  /** Its transaction begins with that lock too: it changes the organization itself, which a revocation holds. */
  readonly locksOrganization?: true;
};

/** One authorized request: exactly what its access grants, and its validated parts. */
export type Call<G extends Grant = Grant, P = unknown, Q = unknown, B = unknown> = G & {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
};

/** The database for reading alone. */
export type Reader = Pick<Database, 'selectFrom'>;

/**
 * The phases of a request. Only `handle` holds a connection to the database and a turn of its organization, so only that one
 * must never wait for anything else.
 */
export type Phases<C, R, W, T, U = unknown, H = Handling, N = R> = {
  /** Before the transaction: it may wait and call others, and writes nothing. An upload is consumed here. */
  prepare?(call: C & Preparing & U): Promise<W>;
  /**
   * Calls the database and nothing else. Every method but GET, and a tracked GET, runs in a transaction, which the audit event
   * is part of; after a deadlock it runs again.
   */
  handle(call: C & H, prepared: W): Promise<T>;
  /**
   * After a `handle` that rejected with an error of the domain: removes what `prepare` made outside the database. It is not called
   * where the outcome of the commit is unknown, so something else must look for what is left.
   */
  discard?(prepared: W): Promise<void>;
  /** After the commit: it notifies, counts and starts what the outcome asks for. An error in it changes no response. */
  after?(call: C & Waiting, outcome: R, prepared: W): Promise<void> | void;
  /** Once, after all of these, whatever came of them: gives back what `prepare` has reserved in this process. It must not throw. */
  settle?(prepared: W): void;
  /** What `respond` needs of the body and of the outcome, both of which may be large; the outcome when absent. */
  keep?(call: C, outcome: R): N;
  /**
   * After that, for a caller who asked to wait for what follows the commit: it may wait, and gives the response. What it
   * throws is the response too, and changes neither what is committed nor its audit event. The body is not held meanwhile.
   */
  respond?(call: Omit<C, 'body'> & Responding, kept: N): Promise<T>;
};

export type Waiting = {
  /** Aborts when the caller has left, or when the process begins to shut down; the reason is an error that says which. */
  readonly signal: AbortSignal;
};
/** A stream that is produced. */
export type Streaming = Waiting & {
  /** After the commit. A query has a connection, and a turn of its organization, for itself alone. */
  readonly db: Reader;
  /** What a client has seen that reconnects to a stream of events. */
  readonly lastEventId: string | undefined;
};
export type Preparing = Waiting & { readonly db: Reader };
/** A tracked route has a transaction, which COPY and the vault ask for, and so has one that says so. */
export type Handling<K extends Tracking = Tracking> = {
  readonly db: K extends { readonly operation: Operation } | { readonly inTransaction: true }
    ? Transaction
    : Database;
};
export type Responding = Preparing & Pick<Store, 'write'>;

/** A route as the pipeline sees it. */
export type Route = RouteFacts &
  RequestParts &
  Phases<Call, Outcome, unknown, Outcome | void, { readonly upload: unknown }, Handling, unknown> & {
    readonly access: Access;
    readonly tracking: Tracking;
    readonly responses: Responses;
    stream?(call: Call & Streaming, source: unknown): AsyncIterable<unknown>;
  };

/**
 * Produces a streamed response, after the commit and no faster than the client reads. It must end when the signal of
 * the call aborts.
 */
type Production<C, R extends Responses> = [PieceOf<R>] extends [never]
  ? { readonly stream?: never }
  : { stream(call: C & Streaming, source: SourceOf<R>): AsyncIterable<PieceOf<R>> };

type Part<S extends z.ZodType | undefined> = S extends z.ZodType ? z.output<S> : undefined;

/** What `prepare` gets of an upload. */
type Uploaded<U extends Upload | undefined> =
  U extends Upload<infer Content> ? { readonly upload: Content } : unknown;

/** A handler without a body to send may return nothing. */
type Returned<R extends Responses> = OutcomeOf<R> | (null extends R[keyof R] ? void : never);

/** Clients of a public path may be newer than this platform; those of our own paths are of its version. */
function unknownNamesOf(path: string): 'pass' | 'refuse' {
  return path.startsWith('/v1/') ? 'refuse' : 'pass';
}

/** A route whose phases see its grant and its parts by their types, and whose outcome fits its responses. */
export function defineRoute<
  G extends Grant,
  R extends Responses,
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  W = undefined,
  U extends Upload | undefined = undefined,
  K extends Tracking = Tracking,
  N = OutcomeOf<R>,
>(
  route: RouteFacts & {
    readonly access: Access<G>;
    readonly tracking: K;
    readonly responses: R;
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly bodyRules?: BodyRules;
    readonly upload?: U;
    /** Names that the schemas do not have are refused below `/v1/` and pass elsewhere, unless the route says it. */
    readonly unknownNames?: 'pass' | 'refuse';
  } & Phases<
      Call<NoInfer<G>, Part<P>, Part<Q>, Part<B>>,
      OutcomeOf<R>,
      W,
      Returned<R>,
      Uploaded<U>,
      Handling<NoInfer<K>>,
      N
    > &
    Production<Call<NoInfer<G>, Part<P>, Part<Q>, Part<B>>, R>,
): Route {
  return { unknownNames: unknownNamesOf(route.path), ...route } as unknown as Route;
}

/** The tracking of most reads. */
export const UNTRACKED_READ = {
  untracked: 'a read that is not among the tracked operations',
} as const satisfies Tracking;

/** The outcome of a route that created, read or changed one resource. */
export function resourceOutcome<T extends { readonly id: string }>(body: T) {
  return { body, resources: [body.id] };
}

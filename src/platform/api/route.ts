// A route as data: who may call it, what it reads, how it responds, what it leaves in the audit log. The pipeline around it
// (access, parsing, transaction, audit) is the same for all, so that a new route cannot forget a part of it.
import type { z } from '../../base/schema.ts';
import type { Operation } from '../audit/operations.ts';
import type { Caller } from '../identity/authentication.ts';
import type { Permission } from '../identity/permission.ts';
import type { Database } from '../store/database.ts';

export type Access =
  /** Anybody: probes and documentation. */
  | { readonly to: 'anyone' }
  /** In the organization of the key; `X-Organization-Id`, if sent, must name it. */
  | { readonly to: 'organization'; readonly permission: Permission }
  /** In the workspace that `X-Tenant-Id` names, or in the only one of the key. */
  | { readonly to: 'workspace'; readonly permission: Permission }
  /** With the token of a sandbox. */
  | { readonly to: 'sandbox' };

/** A tracked operation of the audit log, or the reason why there is none. */
export type Tracking = { readonly operation: Operation } | { readonly untracked: string };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The parts of a request, by schema. A part without a schema is rejected when it is sent. */
export type RequestParts = {
  /** Of the path: every name in braces. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
};

export type Route = RequestParts & {
  readonly method: Method;
  /** `/v2/listeners/{listener_id}` */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly access: Access;
  readonly tracking: Tracking;
  /** `text` is the type of a body that is not JSON. */
  readonly success: {
    readonly status: 200 | 201 | 204;
    readonly body?: z.ZodType;
    readonly text?: 'text/html';
  };
  /** Statuses that it may have besides 401, 403, 422, 429 and 5xx; none when absent. */
  readonly failures?: readonly (404 | 409 | 400 | 413)[];
  handle(call: Call): Promise<Outcome | void>;
};

/** One authorized request. Everything in it is validated. */
export type Call<P = unknown, Q = unknown, B = unknown, C = Caller | undefined> = {
  /** Undefined where anyone or a sandbox may call. */
  readonly caller: C;
  /** Of the caller, in the organization or the workspace that the route gives access to. */
  readonly permissions: ReadonlySet<Permission>;
  /** Empty outside an organization. */
  readonly organizationId: string;
  /** Empty outside a workspace. */
  readonly workspaceId: string;
  /** The sandbox whose token was sent; else empty. */
  readonly sandbox: string;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** For a write, a transaction that the audit event will be part of. */
  readonly db: Database;
};

export type Outcome = {
  /** As `success.body` describes it. */
  readonly body?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
  /** Ids of the affected resources, for the audit log. */
  readonly resources?: readonly string[];
};

type Part<S extends z.ZodType | undefined> = S extends z.ZodType ? z.output<S> : undefined;
type CallerOf<A extends Access> = A extends { readonly permission: Permission } ? Caller : undefined;

/** The tracking of most reads. */
export const UNTRACKED_READ: Tracking = { untracked: 'a read that is not among the tracked operations' };

/** The outcome of a route that created, read or changed one resource. */
export function resourceOutcome(body: { readonly id: string }): Outcome {
  return { body, resources: [body.id] };
}

/** A route whose handler sees its parts by their types. */
export function defineRoute<
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
  A extends Access = Access,
>(
  route: Omit<Route, 'access' | 'handle' | 'params' | 'query' | 'body'> & {
    readonly access: A;
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    handle(call: Call<Part<P>, Part<Q>, Part<B>, CallerOf<A>>): Promise<Outcome | void>;
  },
): Route {
  return route as unknown as Route;
}

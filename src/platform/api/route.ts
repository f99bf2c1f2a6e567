// A route as data: who may call it, what it reads, what it answers, what it leaves in the audit log. The pipeline around
// it (access, parsing, transaction, audit) is the same for all, so that a new route cannot forget a part of it.
import type { z } from '../../base/schema.ts';
import type { Operation } from '../audit/operations.ts';
import type { Caller } from '../identity/authentication.ts';
import type { Permission } from '../identity/permission.ts';
import type { Database } from '../store/database.ts';

export type Access =
  /** Anybody: probes and documents. */
  | { readonly to: 'anyone' }
  /** In the organization of the key; `X-Organization-Id`, if there, must be that one. */
  | { readonly to: 'organization'; readonly permission: Permission }
  /** In the workspace that `X-Tenant-Id` names, or that the key stands for. */
  | { readonly to: 'workspace'; readonly permission: Permission }
  /** By the token of a sandbox. */
  | { readonly to: 'sandbox' };

/** What the audit log gets: a tracked operation, or the reason why there is nothing to track. */
export type Tracking = { readonly operation: Operation } | { readonly untracked: string };

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The parts of a request, by schema. A part that is absent is refused where it comes all the same. */
export type RequestParts = {
  /** Of the path; every name in braces. */
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
  /** The type of a body that is a text and no JSON stands in `text`. */
  readonly success: {
    readonly status: 200 | 201 | 204;
    readonly body?: z.ZodType;
    readonly text?: 'text/html';
  };
  /** Statuses that it may answer besides 401, 403, 422, 429 and 5xx. */
  readonly failures: readonly (404 | 409 | 400 | 413)[];
  handle(call: Call): Promise<Outcome>;
};

/** One request that may pass. Everything in it is checked. */
export type Call<P = unknown, Q = unknown, B = unknown, C = Caller | undefined> = {
  /** Undefined where anyone or a sandbox may call. */
  readonly caller: C;
  /** Of the caller, in the organization or the workspace that the route gives access to. */
  readonly permissions: ReadonlySet<Permission>;
  /** Empty outside an organization. */
  readonly organizationId: string;
  /** Empty outside a workspace. */
  readonly workspaceId: string;
  /** The sandbox whose token came; else empty. */
  readonly sandbox: string;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Of a write a transaction, in which the audit event will be too. */
  readonly db: Database;
};

export type Outcome = {
  /** What success.body describes. */
  readonly body?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
  /** Ids of what was affected, for the audit log. */
  readonly resources?: readonly string[];
};

type Part<S extends z.ZodType | undefined> = S extends z.ZodType ? z.output<S> : undefined;
type CallerOf<A extends Access> = A extends { readonly permission: Permission } ? Caller : undefined;

/** The tracking of most reads. */
export const UNTRACKED_READ: Tracking = { untracked: 'a read that is not among the tracked operations' };

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
    handle(call: Call<Part<P>, Part<Q>, Part<B>, CallerOf<A>>): Promise<Outcome>;
  },
): Route {
  return route as unknown as Route;
}

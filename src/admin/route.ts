// What a route is: data, and a plain function from a request that is already judged and read to an answer. It must not
// know sockets or the router.
import type { AdminResponse } from './answer.ts';
import type { AdminTarget } from './target.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type AdminRequest = {
  /** The sandbox that the path is about; `default` where it names none. */
  readonly sandbox: string;
  /** The JSON document of a POST, PUT or PATCH; undefined for other methods. */
  readonly body: unknown;
  /** A field's values, joined as RFC 9110 §5.3 allows; undefined when absent. */
  field(name: string): string | undefined;
};

export type Route = {
  readonly method: Method;
  /** With at most one parameter, `{id}`. */
  readonly path: string;
  /** The sandbox that it is about: the one in the path, `default`, or none. */
  readonly subject: 'path' | 'default' | 'none';
  readonly needsToken: boolean;
  /** What it writes has an ETag, so that a request may say what it expects to find. */
  readonly hasEtag: boolean;
  /** For the record. */
  readonly action: string;
  /** For the reader of `GET /`. */
  readonly what: string;
  handler(request: AdminRequest, target: AdminTarget): AdminResponse | Promise<AdminResponse>;
};

export function isWrite({ method }: Pick<Route, 'method'>): boolean {
  return method !== 'GET';
}

export function hasDocument({ method }: Pick<Route, 'method'>): boolean {
  return method !== 'GET' && method !== 'DELETE';
}

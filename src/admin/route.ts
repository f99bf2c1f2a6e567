// What a route of the admin API is: data, and a plain function from a checked request to a response.
import type { AdminResponse } from './admin-errors.ts';
import type { Readers } from './records/record-stream.ts';
import type { AdminTarget } from './target.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type AdminRequest = {
  /** The sandbox that the path is about; `default` where it names none. */
  readonly sandbox: string;
  /** The JSON document of a POST, PUT or PATCH; undefined for other methods. */
  readonly body: unknown;
  /** The parameters that the route takes, each once. */
  readonly query: ReadonlyMap<string, string>;
  readonly stream: StreamParts;
  /** A field's values, joined as RFC 9110 §5.3 allows; undefined when absent. */
  field(name: string): string | undefined;
};

/** What a response without an end needs. */
export type StreamParts = {
  readonly readers: Readers;
  /** Resolves when the response is written, or its client has left. */
  readonly closed: Promise<unknown>;
  /** Aborts when the client has left. */
  left(): AbortSignal;
  /** Aborts when the API ends. */
  readonly draining: AbortSignal;
};

export type Route = {
  readonly method: Method;
  /** With at most one parameter, `{id}`. */
  readonly path: string;
  /** The sandbox that the route is about: the one in the path, `default`, or none. */
  readonly subject: 'path' | 'default' | 'none';
  readonly needsToken: boolean;
  /** What the route writes has an ETag, so that a request may state what it expects to replace. */
  readonly hasEtag: boolean;
  /** The parameters of its query; there are no others. */
  readonly query: readonly string[];
  /** For the record. */
  readonly action: string;
  /** For the reader of `GET /`. */
  readonly what: string;
  handler(request: AdminRequest, target: AdminTarget): AdminResponse | Promise<AdminResponse>;
};

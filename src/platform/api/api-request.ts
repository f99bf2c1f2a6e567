// What the API gets of a request, from its listener or from a test.
import { DomainError } from '../../base/domain-error.ts';
import type { Exchange } from '../../base/http/http-server.ts';
import type { HttpResponse } from '../../base/http/http-response.ts';
import type { ClientAddress } from './client-address.ts';

/** Aborts when the caller has left, or when the process begins to shut down. */
export function signalOf({ left, draining }: Pick<ApiRequest, 'left' | 'draining'>): AbortSignal {
  return AbortSignal.any([left(), draining]);
}

/** Of a response that is a stream or may become one. Throws a DomainError when too many are open. */
export function openStreamOf(connection: ApiRequest['connection']): void {
  if (!connection.openStream())
    throw new DomainError('too_many', 'Too many streams are open: try again later', STREAM_RETRY_MS);
}

const STREAM_RETRY_MS = 5_000;

export type ApiRequest = Pick<Exchange, 'head' | 'body' | 'requestId' | 'left' | 'draining' | 'closed'> & {
  /** Of the client, as far as the proxies in front are trusted. */
  readonly client: ClientAddress;
  /** Where sessions are allowed, the origin that a browser sent it to. */
  readonly origin: string | undefined;
  /** Its connection, which the server counts. */
  readonly connection: {
    /** The caller is known: their address is no longer limited. */
    authenticated(): void;
    /** The response may be a stream; false above the limit of streams. */
    openStream(): boolean;
  };
  /** Called with what becomes known while the request is handled, for the log and the metrics. */
  note(facts: RequestFacts): void;
};

export type RequestFacts = {
  readonly route?: string;
  readonly keyId?: string | undefined;
  readonly organizationId?: string | undefined;
  /** Why the platform cannot serve now, for the operator alone. */
  readonly cause?: string | undefined;
};

/** Never rejects. */
export type Api = (request: ApiRequest) => Promise<HttpResponse>;

/** A request whose path was looked up. */
export type RequestContext = {
  readonly request: ApiRequest;
  /** The query of its target, from its `?` on; empty without one. */
  readonly search: string;
  /** Of the path. */
  readonly params: Readonly<Record<string, string>>;
};

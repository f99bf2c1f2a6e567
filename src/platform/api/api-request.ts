// What the API gets of a request, from its listener or from a test.
import type { Exchange } from '../../base/http/http-server.ts';
import type { HttpResponse } from '../../base/http/http-response.ts';
import type { RouteMatch } from '../../base/http/route-table.ts';
import type { ClientAddress } from './client-address.ts';
import type { Route } from './route.ts';

export type ApiRequest = Pick<Exchange, 'head' | 'body' | 'requestId' | 'left' | 'draining'> & {
  /** Of the client, as far as the proxies in front are trusted. */
  readonly client: ClientAddress;
  /** Called with what becomes known while the request is handled, for the log and the metrics. */
  note(facts: RequestFacts): void;
};

export type RequestFacts = {
  readonly route?: string;
  readonly keyId?: string | undefined;
  /** Why the platform cannot serve now, for the operator alone. */
  readonly cause?: string | undefined;
};

/** Never rejects. */
export type Api = (request: ApiRequest) => Promise<HttpResponse>;

/** A request whose path was looked up. */
export type RequestContext = {
  readonly request: ApiRequest;
  /** Of the request target; its host means nothing. */
  readonly url: URL;
  readonly match: RouteMatch<Route>;
};

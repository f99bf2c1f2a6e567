// What serves the paths that no route has, where a program has something else behind its API.
import type { HttpResponse } from '../../../base/http/http-response.ts';
import { type ApiRequest, openStreamOf } from '../api-request.ts';
import { corsFields, preflight } from './cors.ts';
import type { Route } from '../route.ts';

export type Fallback = Pick<Route, 'access' | 'path' | 'cors' | 'errors'> & {
  /** Of a caller who was let in. It reads the request itself, and gives the whole response. */
  serve(request: ApiRequest): Promise<HttpResponse>;
};

type FallbackParts = {
  /** Throws where the caller is not let in. */
  enter(): Promise<unknown>;
  toResponse(error: unknown): HttpResponse;
};

/** Never rejects. */
export async function serveFallback(
  { path, cors, serve }: Fallback,
  request: ApiRequest,
  { enter, toResponse }: FallbackParts,
): Promise<HttpResponse> {
  request.note({ route: path });
  // Browsers send no credentials with a preflight.
  const method = request.head.field('access-control-request-method');
  const allowed = cors && method && preflight([{ method, cors }], request.head);
  if (allowed) return allowed;
  try {
    await enter();
    openStreamOf(request.connection);
    const response = await serve(request);
    if (cors === undefined) return response;
    return { ...response, fields: { ...response.fields, ...corsFields(cors, request.head) } };
  } catch (error) {
    return toResponse(error);
  }
}

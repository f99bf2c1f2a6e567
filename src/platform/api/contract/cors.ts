// Calls from pages of other origins (CORS), where a route asks for them. Pages send keys in a field, so that the platform allows
// no cookies: a page of another origin must not act in the session of its reader.
import type { HttpResponse } from '../../../base/http/http-response.ts';
import type { RequestHead } from '../../../base/http/request-head.ts';

export type Cors = {
  /** Whose pages may call the route: `https://app.example.com`, or `*` for all. */
  readonly origins: readonly string[];
  /** The response fields that pages may read besides those of every response. */
  readonly exposed?: readonly string[];
  /** Origins besides. */
  readonly pattern?: RegExp | undefined;
  /** Undefined: the method that the route has. */
  readonly methods?: readonly string[] | undefined;
  /** In lower case. Undefined: what the page asks for. */
  readonly headers?: readonly string[] | undefined;
  /** Cookies and the credentials of the browser; never with `*`. */
  readonly allowsCredentials?: boolean;
  readonly maxAgeSeconds?: number;
};

/** A route, as far as this file reads it. */
type WithCors = { readonly method: string; readonly cors?: Cors };

type Fields = Readonly<Record<string, string>>;

const EXPOSED = ['X-Request-Id', 'Retry-After'];
/** How long browsers may remember a preflight, in seconds. */
const MAX_AGE = 600;
const FIELD_NAMES = /^[\w!#$%&'*+.^`|~-]{1,64}(?:, ?[\w!#$%&'*+.^`|~-]{1,64}){0,63}$/;

/** The fields that every response of the route has besides its own. */
export function corsFields(cors: Cors, head: RequestHead): Fields {
  const origin = allowedOrigin(cors, head);
  const exposed = [...EXPOSED, ...(cors.exposed ?? [])].join(', ');
  return {
    // Caches must not serve one origin what another one got.
    Vary: 'Origin',
    ...(origin && {
      ...originFields(cors, origin),
      'Access-Control-Expose-Headers': exposed,
    }),
  };
}

/** The response to a preflight request for one of the routes of a path; undefined for every other OPTIONS. */
export function preflight(routes: readonly WithCors[], head: RequestHead): HttpResponse | undefined {
  const method = head.field('access-control-request-method');
  const route = routes.find((one) => one.method === method);
  const origin = route?.cors && allowedOrigin(route.cors, head);
  if (head.method !== 'OPTIONS' || method === undefined || origin === undefined) return undefined;
  const cors: Cors = route?.cors ?? { origins: [] };
  if (cors.methods !== undefined && !cors.methods.includes(method)) return undefined;
  const names = head.field('access-control-request-headers') ?? '';
  return {
    status: 204,
    fields: {
      Vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
      ...originFields(cors, origin),
      'Access-Control-Allow-Methods': method,
      ...allowedHeaders(cors, names),
      'Access-Control-Max-Age': String(cors.maxAgeSeconds ?? MAX_AGE),
    },
  };
}

function originFields({ allowsCredentials = false }: Cors, origin: string): Fields {
  return {
    'Access-Control-Allow-Origin': origin,
    ...(allowsCredentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
  };
}

/** Without cookies a page may send any field that it could make up. */
function allowedHeaders({ headers }: Cors, names: string): Fields {
  if (headers !== undefined) return { 'Access-Control-Allow-Headers': headers.join(', ') };
  return FIELD_NAMES.test(names) ? { 'Access-Control-Allow-Headers': names } : {};
}

function allowedOrigin({ origins, pattern }: Cors, head: RequestHead): string | undefined {
  const [origin, ...more] = head.values('origin');
  if (origin === undefined || more.length > 0) return undefined;
  if (origins.includes('*')) return '*';
  return origins.includes(origin) || pattern?.test(origin) === true ? origin : undefined;
}

// Which pages of other origins may read what the gateway itself responds for a deployment: those that the deployment allows. Otherwise
// a page could not tell a wrong key from a network that is away.
import { readRequestHead } from '../../base/http/request-head.ts';
import type { GatewayRequest, Target } from '../../gateway/target.ts';
import { type Cors, corsFields, preflight } from '../api/contract/cors.ts';
import type { Served } from './target-table.ts';

/** As without `http.cors`, also where nothing is known: that a deployment does not exist is no secret of it. */
const EVERY_PAGE: Cors = { origins: ['*'] };

type Fields = NonNullable<Target['refusalFields']>;

const NONE: Fields = [];
const EXPOSED = ['X-Sallyport-Error'];

/** Of every response that is not one of the deployment. None for a preflight that it does not allow. */
export function refusalFieldsFor(served: Served | undefined, request: GatewayRequest): Fields {
  if (request.values('origin').length === 0) return NONE;
  const { exposed = [], ...cors } = served?.revision?.cors ?? EVERY_PAGE;
  const known = { ...cors, exposed: [...exposed, ...EXPOSED] };
  const head = headOf(request);
  if (!isPreflight(request)) return Object.entries(corsFields(known, head));
  const [method = ''] = request.values('access-control-request-method');
  return Object.entries(preflight([{ method, cors: known }], head)?.fields ?? {});
}

export function isPreflight(request: GatewayRequest): boolean {
  const has = (name: string): boolean => request.values(name).length > 0;
  return request.method === 'OPTIONS' && has('origin') && has('access-control-request-method');
}

const READ = ['origin', 'access-control-request-method', 'access-control-request-headers'] as const;

function headOf(request: GatewayRequest) {
  const rawHeaders = READ.flatMap((name) => request.values(name).flatMap((value) => [name, value]));
  return readRequestHead({ method: request.method, url: '/', rawHeaders });
}

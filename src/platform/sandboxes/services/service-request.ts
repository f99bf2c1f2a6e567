// What a request to a service authenticates with, and whether a page of another origin sent it in the name of a user. Pure.
import type { GatewayRequest } from '../../../gateway/target.ts';
import { containsKey } from '../../identity/api-key.ts';
import type { ServicePlace } from './service-address.ts';
import { serviceCookiesIn } from './service-cookies.ts';

/** In lower case, as requests are asked for it. */
export const SERVICE_TOKEN_FIELD = 'x-langsmith-sandbox-service-token';
/** In the query of `browser_url`. */
export const CODE_PARAMETER = 'sallyport_code';

type Asked = Pick<GatewayRequest, 'method' | 'target' | 'isUpgrade' | 'values'>;

export type ServiceCode = { readonly kind: 'code'; readonly text: string; readonly target: string };

export type ServiceCredential =
  | { readonly kind: 'token' | 'cookie'; readonly text: string }
  /** `target`: path and query without it. */
  | ServiceCode
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly code: 'unauthenticated' | 'forbidden'; readonly message: string };

/** A code comes first: no box may get one. */
export function readServiceCredential(place: ServicePlace, request: Asked): ServiceCredential {
  const code = takeCode(request.target);
  if (code !== undefined)
    return code.text === undefined || request.method !== 'GET' || request.isUpgrade
      ? refused('forbidden', WRONG_CODE)
      : { kind: 'code', text: code.text, target: code.target };
  const [token, another] = new Set(request.values(SERVICE_TOKEN_FIELD));
  if (another !== undefined) return refused('unauthenticated', TWO_TOKENS);
  if (token !== undefined) return { kind: 'token', text: token };
  const [cookie, second] = serviceCookiesIn(place, request.values('cookie'));
  if (second !== undefined) return refused('unauthenticated', TWO_COOKIES);
  if (cookie === undefined) return { kind: 'none' };
  const text = cookie;
  return isOwnPage(place, request) ? { kind: 'cookie', text } : refused('forbidden', FOREIGN_PAGE);
}

const WRONG_CODE = 'The code of a browser_url is for one GET request';
const TWO_TOKENS = 'Two different service tokens were sent';
const TWO_COOKIES = 'Two cookies of this service were sent: delete the cookies of this site';
const FOREIGN_PAGE =
  'A page of another origin sent this request with the cookie of the service. Pages of services by path have no origin of their own: set gateway.domain, or send the token as X-Langsmith-Sandbox-Service-Token';

function refused(code: 'unauthenticated' | 'forbidden', message: string): ServiceCredential {
  return { kind: 'refused', code, message };
}

/** `text` is undefined where there are several. */
function takeCode(
  target: string,
): { readonly text: string | undefined; readonly target: string } | undefined {
  const at = target.indexOf('?');
  if (at === -1 || !target.includes(CODE_PARAMETER, at)) return undefined;
  const pairs = target.slice(at + 1).split('&');
  const isCode = (pair: string): boolean => pair.split('=', 1)[0] === CODE_PARAMETER;
  const codes = pairs.filter(isCode);
  const [code] = codes;
  if (code === undefined) return undefined;
  const rest = pairs.filter((pair) => !isCode(pair)).join('&');
  const path = target.slice(0, at);
  return {
    text: codes.length === 1 ? code.slice(CODE_PARAMETER.length + 1) : undefined,
    target: rest === '' ? path : `${path}?${rest}`,
  };
}

/**
 * Whether a page of the service, or its user, sent this request: browsers send the cookie with requests of other pages of the same
 * site too. Sec-Fetch-Site is sent to origins that are trustworthy, Origin with everything but simple reads.
 */
function isOwnPage({ origin }: ServicePlace, request: Asked): boolean {
  const origins = request.values('origin');
  const sites = request.values('sec-fetch-site');
  const isOwn = origins.every((one) => one === origin) && sites.every((one) => one === 'same-origin');
  if (request.isUpgrade) return origins.length > 0 && isOwn;
  if (!['GET', 'HEAD'].includes(request.method)) return origins.length + sites.length > 0 && isOwn;
  // A user may come from anywhere, to a whole page.
  const isNavigation =
    isAll(request.values('sec-fetch-mode'), 'navigate') &&
    isAll(request.values('sec-fetch-dest'), 'document');
  const isOwnOrigin = origins.every((one) => one === origin);
  return isOwnOrigin && (isNavigation || sites.every((one) => one === 'same-origin' || one === 'none'));
}

function isAll(values: readonly string[], expected: string): boolean {
  return values.length > 0 && values.every((one) => one === expected);
}

const COOKIES: readonly string[] = ['cookie'];
const PASSED: readonly string[] = [...COOKIES, 'authorization'];

/**
 * The credentials that reach the box: a service may have clients and credentials of its own. A browser sends a password that was typed
 * for one service to every path of its origin that asks for the same realm: where services share one, that is another box.
 */
export function passedFields(
  { by }: Pick<ServicePlace, 'by'>,
  { kind }: Pick<ServiceCredential, 'kind'>,
  authorization: readonly string[],
): readonly string[] {
  const isOfOrigin = by === 'path' && kind === 'cookie';
  return !isOfOrigin && mayPassAuthorization(authorization) ? PASSED : COOKIES;
}

/** Not a key of the platform, which a client has sent by mistake. */
export function mayPassAuthorization(values: readonly string[]): boolean {
  return !values.some(containsKey);
}

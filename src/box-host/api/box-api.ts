// The API of the box host: HTTP over a unix socket that only its user can open, with a token besides. From a request to its
// response; the routes are data.
import { parseJsonBody } from '../../base/http/json-body.ts';
import { errorResponse, jsonResponse, type HttpResponse } from '../../base/http/http-response.ts';
import { type Exchange, HttpServer } from '../../base/http/http-server.ts';
import { createRouteTable } from '../../base/http/route-table.ts';
import type { Log } from '../../base/log.ts';
import { type Issue, parseWith } from '../../base/schema.ts';
import type { Secret } from '../../base/secret.ts';
import { boxId } from '../box-document.ts';
import type { DataPlane } from '../data-plane/data-plane.ts';
import { type BoxApiTarget, type BoxRoute, boxRoutes } from './box-routes.ts';
import type { BoxPorts } from './box-ports.ts';
import { toErrorResponse } from './error-response.ts';
import { snapshotRoutes } from './snapshot-routes.ts';
import { serveUpgrades } from './upgrades.ts';

const LIMITS = { headBytes: 8 * 1024, headMs: 10_000, requestMs: 30_000, keepAliveMs: 60_000 };
/** The platform has limits of its own for its clients. */
const UPLOAD = { idleMs: 60_000, totalMs: 2 * 3_600_000 };
/** A proxy_config of 1 MiB, the values of its secrets, and JSON around them. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

export type BoxApiOptions = {
  readonly token: Secret;
  readonly log: Log;
  readonly plane: DataPlane;
  readonly ports: BoxPorts;
};

export function createBoxApi(target: BoxApiTarget, { token, log, plane, ports }: BoxApiOptions): HttpServer {
  const findRoute = createRouteTable([...boxRoutes, ...snapshotRoutes]);
  const server = new HttpServer({
    limits: LIMITS,
    log,
    reject: (kind) => errorResponse(400, kind, 'This is no HTTP/1.1 request of a platform'),
    async handle(exchange) {
      const { head } = exchange;
      const bearer = /^Bearer (\S+)$/.exec(head.field('authorization') ?? '')?.[1] ?? '';
      if (!token.equals(bearer)) return errorResponse(401, 'wrong_token', 'The token is missing or wrong');
      const { route, params } = findRoute(head.method, head.target);
      if (route === undefined) return errorResponse(404, 'no_route', 'There is no such path and method');
      try {
        return await respond(target, route, params, exchange);
      } catch (error) {
        return toErrorResponse(error, log);
      }
    },
  });
  serveUpgrades(server.listener, { token, boxes: target.boxes, plane, ports, log });
  return server;
}

async function respond(
  target: BoxApiTarget,
  route: BoxRoute,
  params: Readonly<Record<string, string>>,
  { body, left, draining }: Exchange,
): Promise<HttpResponse> {
  const { id } = params;
  if (id !== undefined && !boxId.safeParse(id).success)
    return errorResponse(404, 'not_found', 'This is no id of a box');
  const signal = AbortSignal.any([left(), draining]);
  const upload = route.isUpload === true ? body.stream(UPLOAD) : noBytes();
  const request = { id: id ?? '', params, signal, upload };
  if (route.body === undefined) return route.handle(target, { ...request, body: undefined as never });
  const json = parseJsonBody(await body.read(MAX_BODY_BYTES), false);
  if (!json.ok) return invalid([{ loc: ['body'], msg: json.msg, type: 'json_invalid' }]);
  const parsed = parseWith(route.body, json.value, ['body']);
  return parsed.ok
    ? route.handle(target, { ...request, body: parsed.value as never })
    : invalid(parsed.issues);
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

/** The platform sent what it must not send. */
function invalid(issues: readonly Issue[]): HttpResponse {
  return jsonResponse(422, { code: 'invalid', detail: issues });
}

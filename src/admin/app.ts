// From what the router found to what the exchange of the admin API needs to know of it.
import { type Match, type Router, createRouter } from '../base/router.ts';
import type { RouteMatch } from './exchange.ts';
import type { Route } from './route.ts';

/** Asks `serve` for every request, also where there is no route. */
export function createApp<E extends object>(
  routes: readonly Route[],
  serve: (env: E, match: RouteMatch) => Promise<Response>,
): Router<E> {
  return createRouter(routes, (env, match: Match<Route>) => serve(env, toRouteMatch(match)));
}

function toRouteMatch({ route, params, routes }: Match<Route>): RouteMatch {
  const allowed = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  const isOpen = (route === undefined ? routes : [route]).some(({ needsToken }) => !needsToken);
  return { route, id: route && params['id'], allowed, isOpen };
}

// The door to hono, which finds the route of a method and a path. It must not know what a route does or who asks.
import { Hono } from 'hono';
import { noRoute, type RouteMatch } from './exchange.ts';
import type { Route } from './route.ts';

export type App<E> = (request: Request, env: E) => Response | Promise<Response>;

/** Asks `serve` for every request, also where there is no route. */
export function createApp<E extends object>(
  routes: readonly Route[],
  serve: (env: E, match: RouteMatch) => Promise<Response>,
): App<E> {
  const app = new Hono<{ Bindings: E }>();
  for (const [path, rows] of Map.groupBy(routes, (route) => route.path)) {
    const allowed = rows.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    const isOpen = rows.some(({ needsToken }) => !needsToken);
    const pattern = path.replace('{id}', ':id');
    for (const route of rows)
      app.on(route.method, pattern, (c) =>
        serve(c.env, { route, id: c.req.param('id'), allowed, isOpen: !route.needsToken }),
      );
    app.all(pattern, (c) => serve(c.env, { ...noRoute, allowed, isOpen }));
  }
  app.notFound((c) => serve(c.env, noRoute));
  // hono's own handler prints the error; whoever calls this does better.
  app.onError((error) => {
    throw error;
  });
  return (request, env) => app.fetch(request, env);
}

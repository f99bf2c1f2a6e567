// The door to hono, which finds the route of a method and a path. It must not know what a route does or who asks.
import { Hono } from 'hono';

export type Router<E> = (request: Request, env: E) => Response | Promise<Response>;

/** What was found for a method and a path. */
export type Match<R> = {
  /** Undefined where the path is unknown, or does not know the method. */
  readonly route: R | undefined;
  /** What stands in the place of each name in braces, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The routes of this path, whatever their method. */
  readonly routes: readonly R[];
};

/** Asks `serve` for every request, also where there is no route. A path holds its parameters in braces. */
export function createRouter<R extends { readonly method: string; readonly path: string }, E extends object>(
  routes: readonly R[],
  serve: (env: E, match: Match<R>) => Promise<Response>,
): Router<E> {
  const app = new Hono<{ Bindings: E }>();
  for (const [path, rows] of Map.groupBy(routes, (route) => route.path)) {
    const pattern = path.replaceAll(/\{(\w+)\}/g, ':$1');
    for (const route of rows)
      app.on(route.method, pattern, (c) => serve(c.env, { route, params: c.req.param(), routes: rows }));
    app.all(pattern, (c) => serve(c.env, { route: undefined, params: c.req.param(), routes: rows }));
  }
  app.notFound((c) => serve(c.env, { route: undefined, params: {}, routes: [] }));
  // hono's own handler prints the error; whoever calls this does better.
  app.onError((error) => {
    throw error;
  });
  return (request, env) => app.fetch(request, env);
}

// The same routes under several prefixes, for clients that put one before every path.
import type { Route } from '../route.ts';

/** The first prefix is the one that the API description, the metrics and the log name; `''` is no prefix. */
export function mount(
  routes: readonly Route[],
  { under: [main, ...others] }: { readonly under: readonly [main: string, ...others: string[]] },
): readonly Route[] {
  return routes.map((route) => {
    const paths = pathsOf(route);
    const aliases = [
      ...(route.aliases ?? []).map((path) => main + path),
      ...others.flatMap((prefix) => paths.map((path) => prefix + path)),
    ];
    return { ...route, path: main + route.path, aliases };
  });
}

/** Every path of a route, the one that the API description names first. */
export function pathsOf({ path, aliases = [] }: Pick<Route, 'path' | 'aliases'>): readonly string[] {
  return [path, ...aliases];
}

type Row = Pick<Route, 'method' | 'path'> & { readonly route: Route };

/** A row for each path of each route. Throws an Error where two routes have the same: that is a bug in the routes. */
export function toRows(routes: readonly Route[]): readonly Row[] {
  const rows = routes.flatMap((route) =>
    pathsOf(route).map((path) => ({ method: route.method, path, route })),
  );
  const names = rows.map(({ method, path }) => `${method} ${path}`);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two routes for ${twice}`);
  return rows;
}

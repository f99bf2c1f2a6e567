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

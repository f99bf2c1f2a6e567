// Finds the route for a method and a path. A path pattern holds its parameters in braces: `/v1/things/{id}`. Pure.

export type RouteMatch<R> = {
  /** Undefined where the path is unknown, or does not have the method. */
  readonly route: R | undefined;
  /** The decoded segment for each name in braces. */
  readonly params: Readonly<Record<string, string>>;
  /** The routes of the path, whatever their method; empty for an unknown path. */
  readonly routes: readonly R[];
};

export type FindRoute<R> = (method: string, path: string) => RouteMatch<R>;

type Pattern<R> = {
  readonly length: number;
  /** The segments without braces, and the names in braces, by their places. */
  readonly fixed: readonly (readonly [at: number, text: string])[];
  readonly names: readonly (readonly [at: number, name: string])[];
  readonly routes: readonly R[];
  readonly byMethod: ReadonlyMap<string, R>;
};

/** HEAD finds the route of GET. A fixed segment wins over a parameter in its place. */
export function createRouteTable<R extends { readonly method: string; readonly path: string }>(
  routes: readonly R[],
): FindRoute<R> {
  // Braces sort behind letters, so a fixed segment comes before a parameter.
  const ordered = routes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const patterns = [...Map.groupBy(ordered, ({ path }) => path)].map(([path, rows]) => toPattern(path, rows));
  const byLength = Map.groupBy(patterns, ({ length }) => length);
  return (method, path) => {
    const segments = path.split('/').map(decoded);
    const pattern = byLength.get(segments.length)?.find((one) => matches(one, segments));
    if (pattern === undefined) return { route: undefined, params: {}, routes: [] };
    const { names, routes: all, byMethod } = pattern;
    const params = Object.fromEntries(names.map(([at, name]) => [name, segments[at] ?? '']));
    return { route: byMethod.get(method === 'HEAD' ? 'GET' : method), params, routes: all };
  };
}

function toPattern<R extends { readonly method: string }>(path: string, routes: readonly R[]): Pattern<R> {
  const segments = path.split('/');
  const names = segments.flatMap((text, at) => {
    const name = /^\{(\w+)\}$/.exec(text)?.[1];
    return name === undefined ? [] : [[at, name] as const];
  });
  const places = new Set(names.map(([at]) => at));
  const fixed = segments.map((text, at) => [at, text] as const).filter(([at]) => !places.has(at));
  const byMethod = new Map(routes.map((row) => [row.method, row]));
  return { length: segments.length, fixed, names, routes, byMethod };
}

/** No parameter is empty. */
function matches(
  { fixed, names }: Pick<Pattern<unknown>, 'fixed' | 'names'>,
  segments: readonly string[],
): boolean {
  return fixed.every(([at, text]) => segments[at] === text) && names.every(([at]) => segments[at] !== '');
}

/** The value of the Allow field. */
export function allowedMethods(routes: readonly { readonly method: string }[]): string {
  return routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

/** Decoded after the path was split: an encoded slash never makes a segment. What cannot be decoded stays as it is. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

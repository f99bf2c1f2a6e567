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

type Pattern<R> = { readonly segments: readonly string[]; readonly routes: ReadonlyMap<string, R> };

/** HEAD finds the route of GET. A fixed segment wins over a parameter in its place. */
export function createRouteTable<R extends { readonly method: string; readonly path: string }>(
  routes: readonly R[],
): FindRoute<R> {
  // Braces sort behind letters, so a fixed segment comes before a parameter.
  const ordered = routes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const patterns = [...Map.groupBy(ordered, ({ path }) => path)].map(([path, rows]): Pattern<R> => {
    return { segments: path.split('/'), routes: new Map(rows.map((row) => [row.method, row])) };
  });
  const byLength = Map.groupBy(patterns, ({ segments }) => segments.length);
  return (method, path) => {
    const segments = path.split('/').map(decoded);
    for (const pattern of byLength.get(segments.length) ?? []) {
      const params = matchSegments(pattern.segments, segments);
      if (params === undefined) continue;
      const route = pattern.routes.get(method === 'HEAD' ? 'GET' : method);
      return { route, params, routes: [...pattern.routes.values()] };
    }
    return { route: undefined, params: {}, routes: [] };
  };
}

/** The value of the Allow field. */
export function allowedMethods(routes: readonly { readonly method: string }[]): string {
  return routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

function matchSegments(
  pattern: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const params: Record<string, string> = {};
  for (const [at, wanted] of pattern.entries()) {
    const segment = segments[at] ?? '';
    const name = /^\{(\w+)\}$/.exec(wanted)?.[1];
    if (name === undefined ? segment !== wanted : segment === '') return undefined;
    if (name !== undefined) params[name] = segment;
  }
  return params;
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

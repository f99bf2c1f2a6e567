// Compares host patterns with one another, without a host at hand: does one hold all of another, or meet a part of it?
// Wildcards form a tree, so each question is a walk from a pattern to its parents, however many patterns there are.
import type { HostPattern } from './host-pattern.ts';

/** Of several answers the value that was added first. */
export type OverlapIndex<T> = {
  add(pattern: HostPattern, value: T): void;
  /** A pattern that holds every destination of this one. */
  holding(pattern: HostPattern): T | undefined;
  /** A pattern that shares a destination with this one. */
  meeting(pattern: HostPattern): T | undefined;
};

/** Makes an empty index. */
export function createOverlapIndex<T extends object>(): OverlapIndex<T> {
  // Each value stands under its own pattern (held), and under every wildcard above it (below).
  const held = new Map<string, T>();
  const below = new Map<string, T>();
  const first = (map: ReadonlyMap<string, T>, keys: readonly string[]): T | undefined =>
    keys.reduce<T | undefined>((found, key) => found ?? map.get(key), undefined);
  return {
    add: (pattern, value) => {
      const [own = '', ...above] = keysAbove(pattern);
      for (const key of [own, withPort(own, pattern.port)]) if (!held.has(key)) held.set(key, value);
      for (const key of above.flatMap((wildcard) => [wildcard, withPort(wildcard, pattern.port)]))
        if (!below.has(key)) below.set(key, value);
    },
    holding: (pattern) =>
      first(
        held,
        keysAbove(pattern).flatMap((key) => portsHolding(key, pattern.port)),
      ),
    meeting: (pattern) => {
      const keys = keysAbove(pattern);
      const [own = ''] = keys;
      if (pattern.port === undefined) return first(held, keys) ?? below.get(own);
      return (
        first(
          held,
          keys.flatMap((key) => portsHolding(key, pattern.port)),
        ) ?? first(below, portsHolding(own, pattern.port))
      );
    },
  };
}

/** The pattern's own host, then the wildcards whose hosts include all of its hosts, from the narrowest. */
function keysAbove({ host, isWildcard }: HostPattern): string[] {
  const keys = [isWildcard ? `*.${host}` : host];
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1))
    keys.push(`*${host.slice(dot)}`);
  return keys;
}

function withPort(key: string, port: number | undefined): string {
  return `${key}:${port ?? 'any'}`;
}

function portsHolding(key: string, port: number | undefined): string[] {
  return port === undefined ? [withPort(key, undefined)] : [withPort(key, undefined), withPort(key, port)];
}

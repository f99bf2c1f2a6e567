// Finds the first rule whose path patterns match, among a thousand rules of one host, without asking them all:
// patterns are grouped by the text before their first star, and only groups that begin the path are asked.
import { type Glob, globMatches, type PathPattern } from './path-pattern.ts';

/** `patterns` empty: every path. */
export type PathRule<T> = { readonly patterns: readonly PathPattern[]; readonly value: T };

/** The winner is the first rule, in the order given, of which a pattern matches. */
export type PathIndex<T> = {
  winnerAsSent(path: string): T | undefined;
  winnerDecoded(path: string): T | undefined;
};

/** Indexes the rules once, in both spellings of their patterns. */
export function createPathIndex<T>(rules: readonly PathRule<T>[]): PathIndex<T> {
  const slots = rules.flatMap(({ patterns, value }, order) =>
    (patterns.length === 0 ? [EVERY_PATH] : patterns).map(({ asWritten, decoded }) => ({
      order,
      value,
      asWritten,
      decoded,
    })),
  );
  return {
    winnerAsSent: createFinder(
      slots.map(({ order, value, asWritten }) => ({ order, value, glob: asWritten })),
    ),
    winnerDecoded: createFinder(slots.map(({ order, value, decoded }) => ({ order, value, glob: decoded }))),
  };
}

const EVERYTHING: Glob = { first: '', middle: [], last: '' };
const EVERY_PATH: PathPattern = { text: '', asWritten: EVERYTHING, decoded: EVERYTHING };

type Slot<T> = { readonly order: number; readonly value: T; readonly glob: Glob };

function createFinder<T>(slots: readonly Slot<T>[]): (path: string) => T | undefined {
  const byLength = new Map<number, Map<string, Slot<T>[]>>();
  for (const slot of slots) {
    const { first } = slot.glob;
    const byText = byLength.get(first.length) ?? new Map<string, Slot<T>[]>();
    const group = byText.get(first) ?? [];
    group.push(slot);
    byLength.set(first.length, byText.set(first, group));
  }
  const groups = [...byLength].toSorted(([a], [b]) => a - b);
  return (path) => {
    let best: Slot<T> | undefined;
    for (const [length, byText] of groups) {
      if (length > path.length) break;
      best = firstMatch(byText.get(path.slice(0, length)), path, best);
    }
    return best?.value;
  };
}

function firstMatch<T>(
  slots: readonly Slot<T>[] | undefined,
  path: string,
  best: Slot<T> | undefined,
): Slot<T> | undefined {
  if (slots === undefined) return best;
  for (const slot of slots) {
    if (best !== undefined && best.order <= slot.order) return best;
    if (globMatches(slot.glob, path)) return slot;
  }
  return best;
}

// Finds the first rule whose path patterns match, among a thousand rules of one host, without trying them all: patterns
// are grouped by the text before their first star, and only the groups whose text begins the path are tried.
// One index serves every host, so that memory is linear in the configuration; a host only adds the set of its rules.
import { type Glob, globMatches, type PathPattern } from './path-pattern.ts';
import { mergeSlashes, type PathReadings, partlyDecoded } from './path-spelling.ts';

/** `patterns` empty: every path. */
export type PathRule<T> = { readonly patterns: readonly PathPattern[]; readonly value: T };

/**
 * The winner is the first rule, in the order of the index, of which a pattern matches.
 * `isPlain`: no pattern contains an escape, so that a path without one has the same winner in every spelling.
 */
export type PathFinder<T> = {
  readonly isPlain: boolean;
  winnerAsSent(path: string): T | undefined;
  winnerDecoded(path: string): T | undefined;
  winnerFolded(path: string): T | undefined;
};

/** `among` selects the rules of one host, at a cost of one byte for each rule of the index. */
export type PathIndex<T> = { among(values: Iterable<T>): PathFinder<T> };

/** Indexes the rules once, in each spelling of their patterns that differs from the one before. */
export function createPathIndex<T>(rules: readonly PathRule<T>[]): PathIndex<T> {
  const orders = new Map(rules.map(({ value }, order) => [value, order]));
  const slots = rules.flatMap(({ patterns }, order) =>
    (patterns.length === 0 ? [EVERY_PATH] : patterns).map((pattern) => ({ order, pattern })),
  );
  const asSent = createSearch(slots.map(({ order, pattern }) => ({ order, glob: pattern.asWritten })));
  const isPlain = slots.every(({ pattern }) => pattern.asWritten === pattern.decoded);
  const decoded = isPlain
    ? asSent
    : createSearch(slots.map(({ order, pattern }) => ({ order, glob: pattern.decoded })));
  const folded = slots.every(({ pattern }) => pattern.decoded === pattern.folded)
    ? decoded
    : createSearch(slots.map(({ order, pattern }) => ({ order, glob: pattern.folded })));
  return {
    among: (values) => {
      const members = new Uint8Array(rules.length);
      for (const value of values) members[orders.get(value) ?? rules.length] = 1;
      return {
        isPlain,
        winnerAsSent: (path) => rules[asSent(path, members)]?.value,
        winnerDecoded: (path) => rules[decoded(path, members)]?.value,
        winnerFolded: (path) => rules[folded(path, members)]?.value,
      };
    },
  };
}

/** Why the readings of a path do not have the winner of the path as sent; undefined if they have. */
export function contradictionOf<T>(
  paths: PathFinder<T>,
  { decoded, cut, folded, foldedCut }: PathReadings,
  sent: string,
  winner: T | undefined,
): string | undefined {
  const isRead = (paths.isPlain && decoded === sent) || paths.winnerDecoded(decoded) === winner;
  if (!isRead || (cut !== decoded && paths.winnerDecoded(cut) !== winner)) return TWO_READINGS;
  if (isReadInParts(sent) && partsOf(paths, sent).some((text) => paths.winnerAsSent(text) !== winner))
    return TWO_PARTS;
  // A path that normalization does not change has one reading, even where a pattern would become equal to it.
  if (folded === decoded) return undefined;
  const isFolded = paths.winnerFolded(folded) === winner;
  return isFolded && paths.winnerFolded(foldedCut) === winner ? undefined : TWO_FOLDINGS;
}

/** An escape, a backslash or a repeated slash: only then there is something between the path as sent and decoded. */
function isReadInParts(sent: string): boolean {
  return /[%\\]|\/\//.test(sent);
}

/** A pattern with escapes is itself decoded in part by such an upstream: only merged slashes are compared with it. */
function partsOf<T>(paths: PathFinder<T>, sent: string): readonly string[] {
  return paths.isPlain ? partlyDecoded(sent) : [mergeSlashes(sent)];
}

const TWO_PARTS = 'the path as sent and the path decoded in part match different rules';
const TWO_READINGS = 'the path as sent and the path decoded match different rules';
const TWO_FOLDINGS = 'the path as sent and the path under Unicode normalization (NFKC) match different rules';

const EVERYTHING: Glob = { first: '', middle: [], last: '' };
const EVERY_PATH: PathPattern = { text: '', asWritten: EVERYTHING, decoded: EVERYTHING, folded: EVERYTHING };

type Slot = { readonly order: number; readonly glob: Glob };

/** Returns the lowest order of a member that matches, or -1. */
type Search = (path: string, members: Uint8Array) => number;

function createSearch(slots: readonly Slot[]): Search {
  const byLength = new Map<number, Map<string, Slot[]>>();
  for (const slot of slots) {
    const { first } = slot.glob;
    const byText = byLength.get(first.length) ?? new Map<string, Slot[]>();
    const group = byText.get(first) ?? [];
    group.push(slot);
    byLength.set(first.length, byText.set(first, group));
  }
  const groups = [...byLength].toSorted(([a], [b]) => a - b);
  return (path, members) => {
    let best = -1;
    for (const [length, byText] of groups) {
      if (length > path.length) break;
      const group = byText.get(path.slice(0, length));
      if (group !== undefined) best = firstMatch(group, path, members, best);
    }
    return best;
  };
}

function firstMatch(slots: readonly Slot[], path: string, members: Uint8Array, best: number): number {
  for (const { order, glob } of slots) {
    if (best >= 0 && best <= order) return best;
    if (members[order] === 1 && globMatches(glob, path)) return order;
  }
  return best;
}

// Finds the name that was probably meant: of a command, an option, a variable.

/** A name with at most so many letters added, missing or wrong is a typing error. */
export const maxTypos = 2;

/** The name with the fewest typing errors; undefined: none is near. */
export function nearestOf(written: string, names: readonly string[]): string | undefined {
  const counted = names.map((name) => ({ name, count: editDistance(name, written) }));
  // Of a short name little remains after two errors.
  const near = counted.filter(({ name, count }) => count <= maxTypos && count < name.length / 2);
  return near.toSorted((a, b) => a.count - b.count)[0]?.name;
}

/** The Levenshtein distance, computed row by row. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

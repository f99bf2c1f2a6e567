// Which texts PostgreSQL stores unchanged: those without U+0000 and without halves of surrogate pairs. Pure.

export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Where in a value the first text is that cannot be stored; undefined where there is none. A name that cannot be stored is
 * `…`. The path is built on the way back: nearly every document has none, and some have half a million members.
 */
export function pathToUnstorable(value: unknown): readonly (string | number)[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [key, member] of isList ? value.entries() : Object.entries(value)) {
    if (typeof key === 'string' && !isStorable(key)) return ['…'];
    const path = pathToUnstorable(member);
    if (path !== undefined) return [key, ...path];
  }
  return undefined;
}

// What the fuzz targets of JSON documents ask of a text beside JSON.parse, by simple means of their own.

/** The parsed text, or undefined where it is not JSON in UTF-8. */
export function readJson(bytes: Buffer): { readonly text: string; readonly value: unknown } | undefined {
  const text = bytes.toString('utf8');
  if (!Buffer.from(text).equals(bytes)) return undefined;
  try {
    return { text, value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Does some object of a valid text give a name twice? By counting: JSON.parse returns fewer members than were written. */
export function repeatsName(text: string, value: unknown): boolean {
  const written = [...text.matchAll(/"(?:[^"\\]|\\[^])*"([ \t\r\n]*:)?/g)].filter(
    ([, colon]) => colon,
  ).length;
  return written !== countNames(value);
}

export function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** Every string in the value, names of members included. */
export function stringsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...stringsOf(member)]);
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, member) => sum + countNames(member), own);
}

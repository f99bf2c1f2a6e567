// The JSON text of a value, as a jsonb column stores it: U+0000 and halves of surrogate pairs are replaced, in names too. Pure.

/** Null for null, and for what is absent. */
export function storableJson(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  // JSON.stringify writes those characters, and no others of theirs, as escapes; an escaped backslash is skipped as a pair.
  return JSON.stringify(value).replaceAll(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (escape) =>
    escape.length > 2 && (escape === String.raw`\u0000` || escape.startsWith(String.raw`\ud`))
      ? String.raw`\ufffd`
      : escape,
  );
}

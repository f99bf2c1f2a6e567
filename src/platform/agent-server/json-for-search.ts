// JSON text as `jsonb` takes it: that type stores neither U+0000 nor halves of surrogate pairs, which `json` and graphs do. Pure.

/** The same JSON, with U+FFFD in the place of each character that cannot be searched. */
export function toSearchable(text: string): string {
  if (!text.includes('\\u')) return text;
  return text.replaceAll(ESCAPE, (escape, lost: string | undefined) =>
    lost === undefined ? escape : '\\ufffd',
  );
}

/** Each escape of a JSON text, so that an escaped backslash before `u0000` is not taken for one. What is lost is captured. */
const ESCAPE =
  /\\u[dD][89abAB][\dA-Fa-f]{2}\\u[dD][c-fC-F][\dA-Fa-f]{2}|\\(u0000|u[dD][89a-fA-F][\dA-Fa-f]{2})|\\[^]/g;

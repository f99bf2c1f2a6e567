// Where a text stops being JSON, and what its author probably did. Nothing of the text is repeated: it may be a credential.
import { positionOfSyntaxError } from './json-document.ts';

export type JsonPlace = { readonly position: number; readonly line: number; readonly column: number };

/** Without a limit a search could parse megabytes twenty times. */
const MAX_SEARCHED = 65_536;
const LINE_FEED = 0x0a;

/**
 * The place of a mistake. `position` undefined: the parser did not say where, so the place is searched for; undefined in
 * a text that is longer than `maxSearched`.
 */
export function placeOf(
  text: string,
  position: number | undefined,
  maxSearched = MAX_SEARCHED,
): JsonPlace | undefined {
  if (position === undefined && text.length > maxSearched) return undefined;
  const at = position ?? searchPosition(text);
  let [line, start] = [1, 0];
  // A loop, because a megabyte may have a million lines: as an array they take ten milliseconds.
  for (let i = 0; i < at; i += 1) {
    if (text.charCodeAt(i) !== LINE_FEED) continue;
    line += 1;
    start = i + 1;
  }
  return { position: at, line, column: at - start + 1 };
}

/** What to do about a text that is not JSON, for the position at which it stops being JSON. */
export function syntaxMistake(text: string, at: number): string {
  if (text.trim() === '') return 'the document is empty';
  if (text.startsWith('\ufeff')) return 'it begins with a byte order mark: save it without one';
  if (isBeginning(text)) return 'it ends too early: a quote, bracket or brace is not closed';
  const rest = text.slice(at, at + 2);
  const before = text.slice(0, at).trimEnd().slice(-64);
  return MISTAKES.find(([found, after]) => found.test(rest) && after.test(before))?.[2] ?? OTHER;
}

const OTHER = 'a value, a comma or the end of the document must be here';
const ANY = /^/;

/** What is at the position, what is before it, and what to do; the first that fits. */
const MISTAKES: readonly (readonly [at: RegExp, before: RegExp, advice: string])[] = [
  [/^'/, ANY, 'write names and strings in double quotes'],
  [/^(?:\/[/*]|#)/, ANY, 'JSON has no comments: remove it'],
  [ANY, /\\$/, String.raw`after a backslash only " \ / b f n r t or u and four hexadecimal digits may stand`],
  [/^[}\]]/, /,$/, 'remove the comma before the closing bracket'],
  [/^,/, /[,[{]$/, 'remove one of the commas'],
  [/^[\n\r\t]/, ANY, String.raw`a string must not have a line break or a tab: write \n or \t`],
  [/^[-\w]/, /^$/, 'begin with { or [: this may be YAML or another format'],
  [/^["\w{[-]/, /["\w}\]]$/, 'a comma is missing before it, or the document ends before it'],
  [/^[A-Za-z_]/, /[{,]$/, 'write names in double quotes'],
  [/^[A-Za-z_]/, ANY, 'write text in double quotes; the only words are true, false and null'],
];

/** The first character that no valid document could have there. */
function searchPosition(text: string): number {
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isBeginning(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** True for the beginning of a JSON text: the parser misses something only after its end. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const position = positionOfSyntaxError(error);
    if (position !== undefined) return position >= text.length;
    return error instanceof Error && error.message.includes('end of JSON input');
  }
}

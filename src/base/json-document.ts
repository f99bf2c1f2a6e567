// Parses JSON with one meaning only: of two members with one name JSON.parse takes the last and another reader the first,
// so that one checks what the other does not use. Never quotes the document.

/** `position` is an index into the text; undefined where JSON.parse does not report it. */
export type JsonError = {
  readonly kind: 'not_json' | 'repeated_name' | 'too_deep';
  readonly position: number | undefined;
};
export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: JsonError };

/** Parses a JSON text (RFC 8259) in which no object repeats a name and nothing is nested deeper than 32 levels. */
export function parseJsonDocument(text: string): JsonReading {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, error: { kind: 'not_json', position: positionOfSyntaxError(error) } };
  }
  const error = findAmbiguity(text);
  return error === undefined ? { ok: true, value } : { ok: false, error };
}

/** The parser's own message quotes the text around the error, so only the position is taken from it. */
export function positionOfSyntaxError(error: unknown): number | undefined {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? undefined : Number(position);
}

const MAX_DEPTH = 32;

/** The text is known to be valid JSON, so brackets pair up and a string before a colon is a name. */
function findAmbiguity(text: string): JsonError | undefined {
  // A set is created with the first name of an object: a megabyte may open half a million brackets.
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '{' || character === '[') {
      if (open.push(undefined) > MAX_DEPTH) return { kind: 'too_deep', position: at };
    } else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      const end = endOfString(text, at);
      if (isBeforeColon(text, end) && !addName(open, text.slice(at, end)))
        return { kind: 'repeated_name', position: at };
      at = end - 1;
    }
  }
  return undefined;
}

// A loop and not a regular expression, which runs out of stack over a string of a million escapes.
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (/^[ \t\r\n]$/.test(text[at] ?? '')) at += 1;
  return text[at] === ':';
}

/** Adds a name to the innermost object; false if the object has it already. */
function addName(open: (Set<string> | undefined)[], written: string): boolean {
  // Escapes are resolved: "\u0061" is "a".
  const name = String(JSON.parse(written));
  const names = (open[open.length - 1] ??= new Set());
  if (names.has(name)) return false;
  names.add(name);
  return true;
}

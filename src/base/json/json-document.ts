// Parses JSON with one meaning only: of two members with one name JSON.parse takes the last and another reader the first,
// so that one checks what the other does not use. Never quotes the document.

/** `position` is an index into the text; undefined where JSON.parse does not report it. */
export type JsonError = {
  readonly kind: 'not_json' | 'repeated_name' | 'too_deep' | 'too_many_names' | 'too_many_values';
  readonly position: number | undefined;
};
export type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: JsonError };

/** How strictly a JSON text is read. */
export type JsonRules = {
  readonly maxDepth: number;
  /** Of the members of all objects together: what reads a document later looks at each of them in one turn of the event loop. */
  readonly maxNames: number;
  /** Of the commas in all objects and lists together: a list of ten million numbers is slow to build and to collect. */
  readonly maxValues: number;
  /** Of members with one name the last one counts, as with JSON.parse. */
  readonly mayRepeatNames: boolean;
  /** Text with U+0000 or half of a surrogate pair is rejected: PostgreSQL cannot store it unchanged. */
  readonly isStorable: boolean;
};

export const STRICT: JsonRules = {
  maxDepth: 32,
  // More than any document of ours can hold.
  maxNames: 30_000,
  maxValues: 1_000_000,
  mayRepeatNames: false,
  isStorable: true,
};

/** Parses a JSON text (RFC 8259) by all rules but `isStorable`. */
export function parseJsonDocument(text: string, rules: JsonRules = STRICT): JsonReading {
  const excess = findExcess(text, rules);
  if (excess !== undefined) return { ok: false, error: excess };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, error: { kind: 'not_json', position: positionOfSyntaxError(error) } };
  }
  const error = rules.mayRepeatNames ? undefined : findRepeatedName(text);
  return error === undefined ? { ok: true, value } : { ok: false, error };
}

/** Neither null nor an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The parser's own message quotes the text around the error, so only the position is taken from it. */
export function positionOfSyntaxError(error: unknown): number | undefined {
  const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? undefined : Number(position);
}

const QUOTE = 0x22;
const COLON = 0x3a;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
/** The bit in which `{` and `[`, and `}` and `]`, differ. */
const BRACE_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/**
 * What the text has too much of, before it is parsed: JSON.parse takes half a second for a megabyte of brackets or of
 * names, and nothing else happens meanwhile. The text may be anything. Outside of strings each name has one colon.
 */
function findExcess(text: string, { maxDepth, maxNames, maxValues }: JsonRules): JsonError | undefined {
  let [depth, names, values] = [0, 0, 0];
  let deep: number | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at) - 1;
    else if (code === COLON) {
      names += 1;
      if (names > maxNames) return { kind: 'too_many_names', position: at };
    } else if (code === COMMA) {
      values += 1;
      if (values > maxValues) return { kind: 'too_many_values', position: at };
    } else if ((code | BRACE_BIT) === OPENING) {
      depth += 1;
      if (depth > maxDepth) deep ??= at;
    } else if ((code | BRACE_BIT) === CLOSING) depth -= 1;
  }
  if (deep === undefined) return undefined;
  return depth === 0 ? { kind: 'too_deep', position: deep } : { kind: 'not_json', position: undefined };
}

/** The text is known to be valid JSON, so brackets pair up and a string before a colon is a name. */
function findRepeatedName(text: string): JsonError | undefined {
  // A set is created with the first name of an object: a megabyte may open half a million brackets.
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(text, at);
      if (isBeforeColon(text, end) && !addName(open, text.slice(at, end)))
        return { kind: 'repeated_name', position: at };
      at = end - 1;
    } else if ((code | BRACE_BIT) === OPENING) open.push(undefined);
    else if ((code | BRACE_BIT) === CLOSING) open.pop();
  }
  return undefined;
}

// A loop and not a regular expression, which runs out of stack over a string of a million escapes.
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) break;
    at += code === BACKSLASH ? 2 : 1;
  }
  return at + 1;
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return text.charCodeAt(at) === COLON;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}

/** Adds a name to the innermost object; false if the object has it already. */
function addName(open: (Set<string> | undefined)[], written: string): boolean {
  // Escapes are resolved: "\u0061" is "a". Few names have one, and parsing each would take longer than all the rest.
  const name = written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
  const names = (open[open.length - 1] ??= new Set());
  if (names.has(name)) return false;
  names.add(name);
  return true;
}

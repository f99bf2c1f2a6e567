// Parses a document of many secrets: NAME=value lines, or a JSON object of strings. Pure. An error names the source and the
// line and never quotes it: it may be a secret in the wrong place.
import { type JsonError, parseJsonDocument } from '../../base/json/json-document.ts';

export type FoundSecret = { readonly name: string; readonly value: string; readonly from: string };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Letters, digits and underscores, not beginning with a digit, as in a placeholder `{NAME}`. */
export function isSecretName(text: string): boolean {
  return NAME.test(text);
}

/** A document that begins with `{` is JSON, because no name does. Throws an Error that says which line is wrong. */
export function parseSecretDocument(text: string, source: string): FoundSecret[] {
  return text.trimStart().startsWith('{') ? parseJson(text, source) : parseSecretLines(text, source);
}

/**
 * One `NAME=value` in each line. Blank lines and lines that begin with `#` are skipped; `export ` before the name is
 * allowed; white space around name and value is removed, and so is a pair of quotes around the whole value. There are no
 * escapes, no expansion and no comments after a value: every other character is literal.
 */
export function parseSecretLines(text: string, source: string): FoundSecret[] {
  const found = new Map<string, FoundSecret>();
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const from = `${source}:${index + 1}`;
    const equals = line.indexOf('=');
    const name = line
      .slice(0, Math.max(equals, 0))
      .replace(/^export\s+/, '')
      .trim();
    if (!isSecretName(name))
      throw new Error(`${from}: this line must be NAME=value, and a name must have ${ALPHABET}`);
    const earlier = found.get(name);
    if (earlier !== undefined) throw new Error(`${from}: ${name} is set before, at ${earlier.from}`);
    found.set(name, { name, value: unquote(line.slice(equals + 1).trim(), from), from });
  }
  return [...found.values()];
}

/** For messages about names. */
export const ALPHABET = 'only letters, digits and underscores, and no digit at the beginning';

function unquote(value: string, from: string): string {
  const quote = value[0];
  if (quote !== '"' && quote !== "'") return value;
  if (value.length > 1 && value.indexOf(quote, 1) === value.length - 1) return value.slice(1, -1);
  throw new Error(
    `${from}: a value that begins with a quote must end with the same quote and contain no other`,
  );
}

function parseJson(text: string, source: string): FoundSecret[] {
  return Object.entries(parseObject(text, source)).map(([name, value]) => {
    // Not quoted: the name may be anything here.
    if (!isSecretName(name)) throw new Error(`${source}: each name must have ${ALPHABET}`);
    if (typeof value !== 'string') throw new Error(`${source}: ${name} must be a string`);
    return { name, value, from: source };
  });
}

function parseObject(text: string, source: string): Record<string, unknown> {
  const reading = parseJsonDocument(text);
  if (!reading.ok) throw new Error(`${source}: ${JSON_ERRORS[reading.error.kind]}`);
  // A text that begins with a brace parses to an object or not at all.
  return reading.value as Record<string, unknown>;
}

const JSON_ERRORS: Readonly<Record<JsonError['kind'], string>> = {
  not_json: 'it begins with { but is not valid JSON',
  repeated_name: 'a name occurs twice',
  too_deep: 'each value must be a string',
  too_many_names: 'it has too many names',
  too_many_values: 'it has too many values',
};

// The values of a filter: texts, numbers of any precision, ids, times to the microsecond, durations, and JSON to be contained.
// A value that its field cannot have is an issue, so that no database meets one. Pure.
import type { ValueKind } from './fields.ts';
import type { Argument, Literal } from './syntax.ts';
import type { FilterIssue } from './tokens.ts';

/** Numbers are decimal texts, as exact as they were written; times are microseconds since 1970. */
export type Value =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'number'; readonly decimal: string }
  | { readonly type: 'flag'; readonly flag: boolean }
  | { readonly type: 'time'; readonly micros: number };

/** A string is what is wrong. */
type Read<T> = T | string;

const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;
const DURATION = /^(\d{1,12})(?:\.(\d{1,9}))?(ms|s|m)$/;
const TIME =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?$/i;
/** No number of a run comes near: what is larger is refused, because databases overflow at different places. */
const MAX_NUMBER_LENGTH = 100;
const MAX_EXPONENT = 300;
const MAX_JSON_DEPTH = 32;

/** A value of a field; an issue where the field cannot have it. */
export function readValue(literal: Literal, kind: ValueKind): Value | FilterIssue {
  const read = convert(literal, kind);
  return typeof read === 'string' ? { at: literal.at, msg: read } : read;
}

export function isIssue<T extends object>(read: T | FilterIssue): read is FilterIssue {
  return 'msg' in read;
}

function convert(literal: Literal, kind: ValueKind): Read<Value> {
  switch (kind) {
    case 'text':
      return literal.kind === 'text' ? { type: 'text', text: literal.text } : 'Expected a text in quotes';
    case 'uuid':
      return literal.kind === 'text' && UUID.test(literal.text)
        ? { type: 'text', text: literal.text.toLowerCase() }
        : 'Expected a UUID in quotes';
    case 'time':
      return literal.kind === 'text' ? readTime(literal.text) : EXPECTED_TIME;
    case 'duration':
      return literal.kind === 'text' ? readDuration(literal.text) : readNumber(literal, EXPECTED_DURATION);
    case 'number':
      return readNumber(literal, 'Expected a number');
    case 'flag':
      return literal.kind === 'flag' ? { type: 'flag', flag: literal.flag } : 'Expected true or false';
    case 'any':
      return readAny(literal);
  }
}

const EXPECTED_TIME = 'Expected a time in quotes, such as "2026-01-31T12:00:00Z", from 1800 to 2200';
const EXPECTED_DURATION = 'Expected seconds as a number, or a duration such as "5s", "200ms" or "2m"';

function readAny(literal: Literal): Read<Value> {
  if (literal.kind === 'text') return { type: 'text', text: literal.text };
  if (literal.kind === 'flag') return { type: 'flag', flag: literal.flag };
  return readNumber(literal, 'Expected a text, a number, true or false');
}

function readNumber(literal: Literal, expected: string): Read<Value> {
  if (literal.kind !== 'number') return expected;
  return isModest(literal.digits)
    ? { type: 'number', decimal: literal.digits }
    : `A number has at most ${MAX_NUMBER_LENGTH} characters, and an exponent of at most ${MAX_EXPONENT}`;
}

function isModest(digits: string): boolean {
  const [, exponent = '0'] = digits.toLowerCase().split('e');
  return digits.length <= MAX_NUMBER_LENGTH && Math.abs(Number(exponent)) <= MAX_EXPONENT;
}

/** Without a zone it is UTC. What is finer than a microsecond is cut off. */
function readTime(text: string): Read<Value> {
  const [found, day = '', clock = '00:00', fraction = '', zone = 'Z'] = TIME.exec(text) ?? [];
  const [year = 0] = day.split('-').map(Number);
  if (found === undefined || year < 1800 || year > 2200) return EXPECTED_TIME;
  const colon = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone.toUpperCase();
  const seconds = Date.parse(`${day}T${clock}${clock.length === 5 ? ':00' : ''}${colon}`) / 1000;
  // A day that its month does not have is moved to the next month by Date.
  const isReal = new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day) === true;
  if (!Number.isFinite(seconds) || !isReal) return EXPECTED_TIME;
  return { type: 'time', micros: seconds * 1e6 + Number(fraction.slice(0, 6).padEnd(6, '0')) };
}

function readDuration(text: string): Read<Value> {
  const [, whole, fraction = '', unit] = DURATION.exec(text) ?? [];
  if (whole === undefined) return EXPECTED_DURATION;
  // Exact: nanoseconds of the unit, of which there are thousands or sixtyfold.
  const nanos = BigInt(whole) * 10n ** 9n + BigInt(fraction.padEnd(9, '0'));
  const scaled = unit === 'ms' ? nanos : nanos * (unit === 'm' ? 60_000n : 1000n);
  const digits = String(scaled).padStart(13, '0');
  return { type: 'number', decimal: `${digits.slice(0, -12).replace(/^0+(?=\d)/, '')}.${digits.slice(-12)}` };
}

/** The text of a JSON object that is to be contained, as it was written: numbers keep all their digits. */
export function readContained(argument: Argument): { readonly json: string } | FilterIssue {
  const { at } = argument;
  const msg = `Expected a JSON object in quotes, such as '{"key": "value"}'`;
  if (argument.kind !== 'text') return { at, msg };
  const { text } = argument;
  // First: with a quote that is not closed, the expressions below would take quadratic time.
  if (!parsesToObject(text)) return { at, msg };
  // Databases parse JSON recursively.
  if (depthOf(text) > MAX_JSON_DEPTH)
    return { at, msg: `The object is nested deeper than ${MAX_JSON_DEPTH} levels` };
  const numbers = text.match(JSON_PIECES)?.filter((piece) => !piece.startsWith('"')) ?? [];
  if (!numbers.every(isModest))
    return {
      at,
      msg: `A number has at most ${MAX_NUMBER_LENGTH} characters, and an exponent of at most ${MAX_EXPONENT}`,
    };
  return { json: text };
}

const JSON_PIECES = /"(?:[^"\\]|\\[^])*"|-?\d[\d.eE+-]*/g;
const NESTING = /"(?:[^"\\]|\\[^])*"|[[\]{}]/g;

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [piece] of text.matchAll(NESTING)) {
    if (piece === '{' || piece === '[') depth += 1;
    else if (piece === '}' || piece === ']') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function parsesToObject(text: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  } catch {
    return false;
  }
}

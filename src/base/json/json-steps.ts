// Parses a large JSON text in steps, so that it need not hold up the event loop: as strictly as its reader asks for, to the
// value that JSON.parse gives. Never quotes the document.
import type { Steps } from '../steps.ts';
import type { JsonRules } from './json-document.ts';
import { LOOKAHEAD, TextWindow } from './text-window.ts';

export type JsonStepsError = {
  readonly kind:
    | 'not_json'
    | 'repeated_name'
    | 'too_deep'
    | 'too_many_names'
    | 'too_many_values'
    | 'long_number'
    | 'unstorable';
  /** An index into the text. */
  readonly position: number;
  /** Names and indexes that lead to the value. */
  readonly path: readonly (string | number)[];
};

export type JsonStepsReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: JsonStepsError };

/** Of one step, which takes a fraction of a millisecond. */
const TOKENS = 256;
const CHARS = 16_384;

/** The text in pieces of any length; one longer than a step makes that step longer. Throws what the pieces throw. */
export function* parseJsonInSteps(pieces: Iterable<string>, rules: JsonRules): Steps<JsonStepsReading> {
  const reader = new Reader(new TextWindow(pieces), rules);
  while (!reader.isOver) {
    const end = reader.position + CHARS;
    for (let tokens = 0; tokens < TOKENS && reader.position < end && !reader.isOver; tokens += 1)
      reader.take();
    yield;
  }
  const { error, value } = reader;
  return error === undefined ? { ok: true, value } : { ok: false, error };
}

type Container = { readonly value: unknown[] | Record<string, unknown>; name: string | undefined };

/** What may come next. `first…`: or the end of the container, which has just begun. */
type Expected = 'value' | 'first_value' | 'name' | 'first_name' | 'colon' | 'rest';

class Reader {
  value: unknown;
  error: JsonStepsError | undefined;
  isOver = false;
  readonly #text: TextWindow;
  readonly #rules: JsonRules;
  readonly #open: Container[] = [];
  #names = 0;
  #values = 0;
  #expected: Expected = 'value';
  /** The pieces of a string that is longer than one step. */
  #string: { readonly start: number; readonly pieces: string[] } | undefined;

  constructor(text: TextWindow, rules: JsonRules) {
    this.#text = text;
    this.#rules = rules;
  }

  get position(): number {
    return this.#text.position;
  }

  /** Takes one token, or a piece of a long string or of much space. */
  take(): void {
    this.#text.fill();
    if (this.#string !== undefined) return this.#takePiece(this.#string);
    // Most tokens follow another at once; a regular expression costs more than the token.
    if (this.#text.isSpace()) return void this.#text.match(SPACE);
    const { character } = this.#text;
    if (this.#expected === 'colon') this.#takeColon(character);
    else if (character === '"' && this.#expected !== 'rest') this.#takeString();
    else if (this.#expected === 'rest') this.#takeRest(character);
    else if (this.#expected === 'name') this.#fail('not_json');
    else if (this.#expected === 'first_name' || (this.#expected === 'first_value' && character === ']'))
      this.#close(character);
    else if (character === '{' || character === '[') this.#openContainer(character);
    else this.#takeWord(character);
  }

  /** What follows a value: the next member, the end of its container, or the end of the text. */
  #takeRest(character: string | undefined): void {
    const container = this.#open.at(-1);
    if (container === undefined) {
      if (character === undefined) this.isOver = true;
      else this.#fail('not_json');
    } else if (character === ',') {
      this.#values += 1;
      if (this.#values > this.#rules.maxValues) return this.#fail('too_many_values');
      this.#text.skip();
      this.#expected = Array.isArray(container.value) ? 'value' : 'name';
    } else this.#close(character);
  }

  #openContainer(bracket: '{' | '['): void {
    if (this.#open.length >= this.#rules.maxDepth) return this.#fail('too_deep');
    this.#text.skip();
    const value = bracket === '[' ? [] : {};
    this.#add(value);
    this.#open.push({ value, name: undefined });
    this.#expected = bracket === '[' ? 'first_value' : 'first_name';
  }

  #close(bracket: string | undefined): void {
    const container = this.#open.at(-1);
    if (container === undefined || bracket !== (Array.isArray(container.value) ? ']' : '}'))
      return this.#fail('not_json');
    this.#text.skip();
    this.#open.pop();
    this.#expected = 'rest';
  }

  #takeWord(character: string | undefined): void {
    const start = this.position;
    const word = this.#text.match(character === '-' || isDigit(character) ? NUMBER : WORD);
    if (word === '') return this.#fail('not_json');
    // It may go on where it can no longer be seen.
    if (word.length >= LOOKAHEAD) return this.#fail('long_number', start);
    this.#add(word === 'true' ? true : word === 'false' ? false : word === 'null' ? null : Number(word));
    this.#expected = 'rest';
  }

  #takeString(): void {
    const start = this.position;
    const short = this.#text.match(SHORT_STRING);
    if (short !== '') return this.#addString(short.slice(1, -1), start);
    this.#text.skip();
    this.#string = { start, pieces: [] };
  }

  #takePiece({ start, pieces }: { readonly start: number; readonly pieces: string[] }): void {
    const piece = this.#text.match(PIECE);
    if (piece !== '') return void pieces.push(piece.includes('\\') ? JSON.parse(`"${piece}"`) : piece);
    if (this.#text.character !== '"') return this.#fail('not_json');
    this.#text.skip();
    this.#string = undefined;
    this.#addString(pieces.join(''), start);
  }

  #addString(text: string, start: number): void {
    const container = this.#open.at(-1);
    const isName = this.#expected === 'name' || this.#expected === 'first_name';
    // Only an escape can make them: the text itself is well-formed and has no control characters in strings.
    if (this.#rules.isStorable && (text.includes('\0') || !text.isWellFormed())) {
      const place = isName ? ['…'] : container === undefined ? [] : [nextKey(container)];
      return this.#fail('unstorable', start, place);
    }
    this.#expected = 'rest';
    if (!isName || container === undefined) return this.#add(text);
    if (!this.#rules.mayRepeatNames && Object.hasOwn(container.value, text))
      return this.#fail('repeated_name', start);
    this.#names += 1;
    if (this.#names > this.#rules.maxNames) return this.#fail('too_many_names', start);
    container.name = text;
    this.#expected = 'colon';
  }

  #takeColon(character: string | undefined): void {
    if (character !== ':') return this.#fail('not_json');
    this.#text.skip();
    this.#expected = 'value';
  }

  #add(value: unknown): void {
    const container = this.#open.at(-1);
    if (container === undefined) this.value = value;
    else if (Array.isArray(container.value)) container.value.push(value);
    else setMember(container.value, container.name ?? '', value);
  }

  #fail(
    kind: JsonStepsError['kind'],
    position: number = this.position,
    last: readonly (string | number)[] = [],
  ) {
    const path = [...this.#open.slice(0, -1).map(lastKey), ...last];
    this.error = { kind, position, path };
    this.isOver = true;
  }
}

const SPACE = new RegExp(`[ \\t\\n\\r]{1,${CHARS}}`, 'y');
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
// Of at most six characters each: a piece is visible as a whole.
const ESCAPES = 10_000;
// With limits: a step must be short, and a regular expression runs out of stack over millions of escapes.
// oxlint-disable-next-line no-control-regex
const SHORT_STRING = new RegExp(`"[^"\\\\\\u0000-\\u001f]{0,${CHARS}}"`, 'y');
const PIECE = new RegExp(
  `(?:[^"\\\\\\u0000-\\u001f]|\\\\["\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}){1,${ESCAPES}}`,
  'y',
);

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9';
}

function lastKey({ value, name }: Container): string | number {
  return Array.isArray(value) ? value.length - 1 : (name ?? '');
}

function nextKey({ value, name }: Container): string | number {
  return Array.isArray(value) ? value.length : (name ?? '');
}

/** As JSON.parse does: a member of this name is a member, and not the prototype. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

// The grammar of a filter: calls of operators with calls, names, values and lists of values. It knows neither the operators nor
// the fields. Length, depth and number of calls are limited, so that a hostile text costs no more than a long one. Pure.
import { FilterSyntaxError, readToken, type Token } from './tokens.ts';

export type Call = {
  readonly kind: 'call';
  readonly at: number;
  readonly name: string;
  readonly args: readonly Argument[];
};

export type Literal =
  | { readonly kind: 'text'; readonly at: number; readonly text: string }
  | { readonly kind: 'number'; readonly at: number; readonly digits: string }
  | { readonly kind: 'flag'; readonly at: number; readonly flag: boolean }
  | { readonly kind: 'null'; readonly at: number };

export type Argument =
  | Call
  | Literal
  | { readonly kind: 'name'; readonly at: number; readonly name: string }
  | { readonly kind: 'list'; readonly at: number; readonly items: readonly Literal[] };

/** In UTF-16 units. */
export const MAX_FILTER_LENGTH = 65_536;
export const MAX_FILTER_DEPTH = 32;
/** Of operators, `and`, `or` and `not` included. */
export const MAX_FILTER_CALLS = 200;
export const MAX_LIST_ITEMS = 1000;

/** Throws a FilterSyntaxError. */
export function parseSyntax(text: string): Call {
  if (text.length > MAX_FILTER_LENGTH)
    throw new FilterSyntaxError(MAX_FILTER_LENGTH, `A filter has at most ${MAX_FILTER_LENGTH} characters`);
  return new SyntaxReader(text).readWhole();
}

class SyntaxReader {
  readonly #text: string;
  #token: Token;
  #end: number;
  #calls = 0;
  #items = 0;

  constructor(text: string) {
    this.#text = text;
    ({ token: this.#token, end: this.#end } = readToken(text, 0));
  }

  readWhole(): Call {
    const { at } = this.#token;
    const whole = this.#readArgument(0);
    if (whole.kind !== 'call') throw new FilterSyntaxError(at, 'Expected an operator with its arguments');
    if (this.#token.kind !== 'end')
      throw new FilterSyntaxError(this.#token.at, 'Expected the end of the filter');
    return whole;
  }

  #readArgument(depth: number): Argument {
    const token = this.#take();
    const { at } = token;
    switch (token.kind) {
      case 'text':
      case 'number':
        return token;
      case 'name':
        if (this.#isMark('(')) return this.#readCall(token.name, at, depth);
        return constantOf(token.name, at) ?? token;
      case 'mark':
        if (token.mark === '[') return this.#readList(at);
        break;
      case 'end':
        throw new FilterSyntaxError(at, 'The filter ends here, and is not complete');
    }
    throw new FilterSyntaxError(at, 'Expected an operator, a field or a value');
  }

  #readCall(name: string, at: number, depth: number): Call {
    this.#calls += 1;
    if (this.#calls > MAX_FILTER_CALLS)
      throw new FilterSyntaxError(at, `A filter has at most ${MAX_FILTER_CALLS} operators`);
    if (depth >= MAX_FILTER_DEPTH)
      throw new FilterSyntaxError(at, `A filter has at most ${MAX_FILTER_DEPTH} operators in one another`);
    this.#take();
    const args = this.#readUntil(')', () => this.#readArgument(depth + 1));
    return { kind: 'call', at, name, args };
  }

  #readList(at: number): Argument {
    const items = this.#readUntil(']', () => {
      const item = this.#take();
      this.#items += 1;
      if (this.#items > MAX_LIST_ITEMS)
        throw new FilterSyntaxError(item.at, `The lists of a filter have at most ${MAX_LIST_ITEMS} values`);
      const value = item.kind === 'name' ? constantOf(item.name, item.at) : item;
      if (value === undefined || value.kind === 'mark' || value.kind === 'end')
        throw new FilterSyntaxError(item.at, 'A list holds texts, numbers, true and false');
      return value;
    });
    return { kind: 'list', at, items };
  }

  /** What stands between commas, up to the closing mark. */
  #readUntil<T>(closing: string, read: () => T): readonly T[] {
    const found: T[] = [];
    while (found.length > 0 || !this.#isMark(closing)) {
      found.push(read());
      if (!this.#isMark(',')) break;
      this.#take();
    }
    const { at, kind } = this.#token;
    if (this.#isMark(closing)) this.#take();
    else if (kind === 'end') throw new FilterSyntaxError(at, `The filter ends here: ${closing} is missing`);
    else throw new FilterSyntaxError(at, `Expected , or ${closing}`);
    return found;
  }

  #isMark(mark: string): boolean {
    return this.#token.kind === 'mark' && this.#token.mark === mark;
  }

  #take(): Token {
    const token = this.#token;
    ({ token: this.#token, end: this.#end } = readToken(this.#text, this.#end));
    return token;
  }
}

function constantOf(name: string, at: number): Literal | undefined {
  if (name === 'null') return { kind: 'null', at };
  if (name === 'true' || name === 'false') return { kind: 'flag', at, flag: name === 'true' };
  return undefined;
}

// Glob patterns over paths: `**` for any number of segments, and `*`, `?`, `[…]` within one. Matching takes time in proportion
// to pattern times name, whatever the pattern: a regular expression for several stars does not. Pure.

type Token =
  | { readonly kind: 'star' }
  | { readonly kind: 'any' }
  | { readonly kind: 'set'; readonly has: (char: string) => boolean };
type Segment = readonly Token[] | 'anyDepth';

/** Which segments of the pattern the next segment of a path may match. */
export type GlobState = ReadonlySet<number>;

export class GlobPattern {
  readonly #segments: readonly Segment[];

  constructor(pattern: string) {
    const segments = pattern.split('/').filter((segment) => segment !== '' && segment !== '.');
    this.#segments = segments.map((segment) => (segment === '**' ? 'anyDepth' : tokensOf(segment)));
  }

  /** Of the folder that paths are relative to. */
  start(): GlobState {
    return this.#close(new Set([0]));
  }

  /** The state behind a segment of a path; empty where nothing below can match. */
  next(state: GlobState, name: string): GlobState {
    const reached = new Set<number>();
    for (const at of state) {
      const segment = this.#segments[at];
      if (segment === 'anyDepth') reached.add(at);
      else if (segment !== undefined && matches(segment, [...name])) reached.add(at + 1);
    }
    return this.#close(reached);
  }

  isMatch(state: GlobState): boolean {
    return state.has(this.#segments.length);
  }

  /** Whether anything below a folder in this state can match. */
  leadsOn(state: GlobState): boolean {
    return [...state].some((at) => at < this.#segments.length);
  }

  /** `**` matches no segment too. */
  #close(state: Set<number>): GlobState {
    for (const at of state) if (this.#segments[at] === 'anyDepth') state.add(at + 1);
    return state;
  }
}

function tokensOf(segment: string): readonly Token[] {
  const chars = [...segment];
  const tokens: Token[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const char = chars[at] ?? '';
    const end = char === '[' ? endOfSet(chars, at) : -1;
    if (char === '*') tokens.push({ kind: 'star' });
    else if (char === '?') tokens.push({ kind: 'any' });
    else if (end !== -1) {
      tokens.push(setOf(chars.slice(at + 1, end)));
      at = end;
    } else {
      // A backslash takes the next character as it is.
      const literal = char === '\\' && at + 1 < chars.length ? (chars[(at += 1)] ?? '') : char;
      tokens.push({ kind: 'set', has: (other) => other === literal });
    }
  }
  return tokens;
}

/** A bracket that nothing closes is a bracket. One that comes first in a set belongs to it. */
function endOfSet(chars: readonly string[], from: number): number {
  const first = from + (chars[from + 1] === '!' || chars[from + 1] === '^' ? 2 : 1);
  return chars.indexOf(']', first + 1);
}

function setOf(chars: readonly string[]): Token {
  const isNegated = chars[0] === '!' || chars[0] === '^';
  const members = isNegated ? chars.slice(1) : chars;
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let at = 0; at < members.length; at += 1) {
    const [from = '', dash, to] = members.slice(at, at + 3);
    const isRange = dash === '-' && to !== undefined;
    ranges.push([from, isRange ? to : from]);
    if (isRange) at += 2;
  }
  return {
    kind: 'set',
    has: (char) => ranges.some(([from, to]) => char >= from && char <= to) !== isNegated,
  };
}

/** Goes back to the last star alone: what an earlier star could take, the last one can take too. */
function matches(tokens: readonly Token[], name: readonly string[]): boolean {
  let [token, char] = [0, 0];
  let star: { readonly token: number; char: number } | undefined;
  while (char < name.length) {
    const current = tokens[token];
    if (current?.kind === 'star') {
      star = { token, char };
      token += 1;
    } else if (current !== undefined && (current.kind === 'any' || current.has(name[char] ?? ''))) {
      token += 1;
      char += 1;
    } else if (star !== undefined) {
      star.char += 1;
      char = star.char;
      token = star.token + 1;
    } else return false;
  }
  return tokens.slice(token).every(({ kind }) => kind === 'star');
}

// The text of a filter as tokens: names, values and punctuation, each with its position. Every expression is sticky and reads
// each character once, so that no text takes more than linear time. Pure.

export type Token =
  | { readonly kind: 'name'; readonly at: number; readonly name: string }
  | { readonly kind: 'text'; readonly at: number; readonly text: string }
  /** As it is written: a number of JSON, of any precision. */
  | { readonly kind: 'number'; readonly at: number; readonly digits: string }
  | { readonly kind: 'mark'; readonly at: number; readonly mark: string }
  | { readonly kind: 'end'; readonly at: number };

/** Where a filter is wrong, by the number of UTF-16 units before that place, and how to correct it. */
export type FilterIssue = { readonly at: number; readonly msg: string };

/** Thrown at the first place that is no token, or no part of an expression: what follows it could mean anything. */
export class FilterSyntaxError extends Error {
  readonly issue: FilterIssue;

  constructor(at: number, msg: string) {
    super(msg);
    this.issue = { at, msg };
  }
}

const BLANK = /[ \t\r\n]*/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
const QUOTED = /"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'/y;
const ESCAPE = /\\(?:u([\dA-Fa-f]{4})|([^]))/g;

const ESCAPED: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** Reads the token that begins at `from` or after blanks; `end` is the position behind it. */
export function readToken(text: string, from: number): { readonly token: Token; readonly end: number } {
  const at = from + (matchAt(BLANK, text, from)?.length ?? 0);
  const first = text[at];
  if (first === undefined) return { token: { kind: 'end', at }, end: at };
  if ('(),[]'.includes(first)) return { token: { kind: 'mark', at, mark: first }, end: at + 1 };
  if (first === '"' || first === "'") return readQuoted(text, at);
  const name = matchAt(NAME, text, at);
  if (name !== undefined) return { token: { kind: 'name', at, name }, end: at + name.length };
  const digits = matchAt(NUMBER, text, at);
  if (digits !== undefined) return { token: { kind: 'number', at, digits }, end: at + digits.length };
  throw new FilterSyntaxError(at, 'Expected a name, a text in quotes, a number or one of ( ) [ ] and ,');
}

function readQuoted(text: string, at: number): { readonly token: Token; readonly end: number } {
  const quoted = matchAt(QUOTED, text, at);
  if (quoted === undefined) throw new FilterSyntaxError(at, 'This quote is not closed');
  const content = quoted
    .slice(1, -1)
    .replaceAll(ESCAPE, (_, code: string | undefined, one: string, offset) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      const meant = ESCAPED[one];
      if (meant !== undefined) return meant;
      const where = at + 1 + Number(offset);
      throw new FilterSyntaxError(
        where,
        String.raw`Unknown escape: a backslash is written \\, other characters as in JSON`,
      );
    });
  return { token: { kind: 'text', at, text: content }, end: at + quoted.length };
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

// JSON on lines of its own for readers: only white space changes, so that numbers and escapes stay as they were sent. The text may be
// cut off anywhere. What follows is left as it is once the lines have become long: a bracket would take eighty times its size. Pure.

const INDENT = '  ';
/** Deeper values stay at the margin of this depth. */
const MAX_DEPTH = 40;
/** Of what is laid out, in UTF-16 units. */
const MAX_LAID_OUT = 256 * 1024;

export function layOutJson(text: string): string {
  let out = '';
  let depth = 0;
  const breakLine = (): string => `\n${INDENT.repeat(Math.min(Math.max(depth, 0), MAX_DEPTH))}`;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (out.length > MAX_LAID_OUT) return out + text.slice(index);
    if (/^[\s]+$/.test(token)) continue;
    if (token.length === 2 && /^(?:\{\}|\[\])$/.test(token)) out += token;
    else if (token === '{' || token === '[') {
      depth += 1;
      out += token + breakLine();
    } else if (token === '}' || token === ']') {
      depth -= 1;
      out += breakLine() + token;
    } else if (token === ',') out += token + breakLine();
    else if (token === ':') out += ': ';
    else out += token;
  }
  return out;
}

/** Strings, also one without its end; empty lists and objects; white space; marks; everything else. */
const TOKENS = /"(?:[^"\\]|\\[^])*"?|\{\}|\[\]|\s+|[{}[\],:]|[^\s"{}[\],:]+/g;

// Reads a file of variables, NAME=value on each line. What it cannot read is an error: a variable that is left out, or a part of
// its value, would show itself much later, in a program that uses it.

type Entries =
  | { readonly values: Readonly<Record<string, string>> }
  | { readonly line: number; readonly msg: string };

const NAME = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=(.*)$/s;
const IGNORED = /^\s*(?:#.*)?$/;
const QUOTED = /^\s*(["'`])/;

/** An error names the line and never what is in it. */
export function parseEnvFile(text: string): Entries {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const values: Record<string, string> = {};
  for (let at = 0; at < lines.length; at += 1) {
    const line = at + 1;
    const first = lines[at] ?? '';
    if (IGNORED.test(first)) continue;
    const [, name, rest = ''] = NAME.exec(first) ?? [];
    if (name === undefined) return { line, msg: 'must be NAME=value, or a comment that begins with #' };
    const quote = QUOTED.exec(rest)?.[1];
    if (quote === undefined) {
      values[name] = rest.replace(/\s#.*$/, '').trim();
      continue;
    }
    let value = rest.trimStart().slice(1);
    while (!value.includes(quote) && at + 1 < lines.length) value += `\n${lines[(at += 1)]}`;
    const end = value.indexOf(quote);
    if (end === -1) return { line, msg: `the value of ${name} has no closing ${quote}` };
    if (!/^(?:\s*|\s+#.*)$/.test(value.slice(end + 1)))
      return { line, msg: `the value of ${name} goes on after the closing ${quote}: quote all of it` };
    const inner = value.slice(0, end);
    values[name] = quote === '"' ? inner.replaceAll(String.raw`\n`, '\n') : inner;
  }
  return { values };
}

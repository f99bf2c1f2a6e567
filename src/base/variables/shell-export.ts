// Lines that a POSIX shell can evaluate.

/** The value in single quotes: no part of it can be read as a command. */
export function shellQuote(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`)}'`;
}

/** The value as one word of a command that a person reads: in quotes only if it needs them. */
export function shellWord(value: string): string {
  return /^[\w@%+=:,./-]+$/.test(value) ? value : shellQuote(value);
}

/** `export NAME='value'` and a line feed. The name must be a valid one. */
export function shellExport(name: string, value: string): string {
  return `export ${name}=${shellQuote(value)}\n`;
}

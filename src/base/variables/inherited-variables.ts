// The variables that a program of this package passes to another one which it starts: those of the machine. None is a secret, and
// none configures the other program.

const NAMES: readonly string[] = [
  ...['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_COMPILE_CACHE'],
];

/** Those of `own` that are set. */
export function inheritedVariables(own: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of NAMES) {
    const value = own[name];
    if (value !== undefined) values[name] = value;
  }
  return values;
}

// How a program begins once it is isolated: a shell in its place reports that, waits for its variables and becomes the program. Pure.
// They come through a descriptor, because the command line of a process can be read by every user of the machine, and because
// programs that isolate it, some as root, must not run with variables of somebody else.

/** Where the shell reports and waits. */
export const BEGIN_DESCRIPTOR = 4;

/**
 * The shell, with the program as its arguments. Whoever started it is alive after everything that ends a program with its starter is
 * set up, because it responds: without a response the program does not begin.
 */
export const BEGIN_SCRIPT: string = `
printf . >&${BEGIN_DESCRIPTOR} || exit 125
eval "$(cat <&${BEGIN_DESCRIPTOR})"
exec ${BEGIN_DESCRIPTOR}>&-
[ "$began" = yes ] || exit 125
unset began
exec "$@"`;

export type Beginning = {
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
};

/** The names that a shell can set. */
export const VARIABLE_NAME: RegExp = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;

/** What the shell evaluates. The last line is missing in what its starter could not write to its end. */
export function encodeBeginning({ environment, cwd }: Beginning): string {
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}=${quote(value)}\n`);
  return [
    'unset LC_ALL SHLVL PWD\n',
    ...variables,
    `umask 077\ncd -- ${quote(cwd)} || exit 126\nunset OLDPWD\n`,
    'began=yes\n',
  ].join('');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

// Formats the usage: of one command by its declaration, and the overview of all commands.
import { type CommandDeclaration, type OptionDeclaration, usageLine } from './declaration.ts';

const MAX_WIDTH = 100;

/** The usage of one command. */
export function formatUsage(command: CommandDeclaration): string {
  const options = [
    ...Object.entries(command.options).map(
      ([name, option]) => [written(name, option), described(option)] as const,
    ),
    ['-h, --help', 'print this text'] as const,
  ];
  const sections = [
    usage(command),
    paragraph(`${command.summary[0]?.toUpperCase()}${command.summary.slice(1)}.`),
    `Options:\n${table(options)}`,
    ...(command.notes ?? []).map(paragraph),
    `Examples:\n${command.examples.map((example) => `  ${example}`).join('\n')}`,
    `Exit codes:\n${table(command.exitCodes)}`,
  ];
  return `${sections.join('\n\n')}\n`;
}

/** What follows the first line is indented below the operands. */
function usage(command: CommandDeclaration): string {
  const label = 'usage: ';
  return wrap(usageLine(command), MAX_WIDTH - label.length)
    .map((line, at) => `${at === 0 ? label : ' '.repeat(label.length)}${line}`)
    .join('\n');
}

/** The overview: one line for each command. */
export function formatOverview(commands: readonly CommandDeclaration[]): string {
  return `usage: sallyport COMMAND [OPTIONS]

${table(commands.map(({ name, summary }) => [name, summary]))}

\`sallyport COMMAND --help\` shows the options, examples and exit codes of a command.
\`sallyport --version\` prints the version.
`;
}

function written(name: string, { type, value = 'VALUE' }: OptionDeclaration): string {
  return type === 'boolean' ? `--${name}` : `--${name} ${value}`;
}

function described({ text, fallback, variable }: OptionDeclaration): string {
  const details = [
    fallback === undefined ? '' : `default ${fallback}`,
    variable === undefined ? '' : variable,
  ].filter((detail) => detail !== '');
  return details.length === 0 ? text : `${text} (${details.join('; ')})`;
}

/** Two columns; the second is wrapped. */
function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length)) + 2;
  const lines = rows.flatMap(([first, second]) =>
    wrap(second, MAX_WIDTH - width - 2).map(
      (line, at) => `  ${(at === 0 ? first : '').padEnd(width)}${line}`,
    ),
  );
  return lines.join('\n');
}

function paragraph(text: string): string {
  return wrap(text, MAX_WIDTH).join('\n');
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

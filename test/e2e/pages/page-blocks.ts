// The code blocks of a page that a reader follows: files to save and commands with what they print. The words after the
// language say how: `file=NAME` is saved, `background` keeps running, `needs=WHAT` cannot be followed on every machine.
export type Step =
  | { readonly kind: 'file'; readonly line: number; readonly name: string; readonly text: string }
  | {
      readonly kind: 'command';
      readonly line: number;
      readonly command: string;
      /** Lines of its output, in order; `...` is any text. */
      readonly printed: readonly string[];
      readonly isBackground: boolean;
    };

/** What a command may need that a test does not have. */
export const NEEDS: readonly string[] = [
  'docker',
  'kubernetes',
  'systemd',
  'bubblewrap',
  'a-checkout',
  'a-platform',
];

const LANGUAGES: readonly string[] = ['console', 'json', 'js', 'python', 'http', 'text', 'yaml', 'ini', 'ts'];

/** The steps of a page. Throws an Error for a word after the language that means nothing. */
export function stepsOf(page: string): readonly Step[] {
  const steps: Step[] = [];
  const lines = page.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const [, info] = /^```(\S.*)$/.exec(lines[at] ?? '') ?? [];
    if (info === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    const text = lines.slice(at + 1, end);
    steps.push(...toSteps(info, text, at + 2));
    at = end;
  }
  return steps;
}

function toSteps(info: string, text: readonly string[], line: number): readonly Step[] {
  const [language = '', ...words] = info.split(' ');
  if (!LANGUAGES.includes(language)) throw new Error(`line ${line - 1}: unknown language ${language}`);
  const options = new Map(words.map((word) => word.split('=', 2) as [string, string | undefined]));
  for (const [name, value] of options) {
    const isKnown =
      name === 'file' ||
      (language === 'console' && name === 'background') ||
      (language === 'console' && name === 'needs' && NEEDS.includes(value ?? ''));
    if (!isKnown) throw new Error(`line ${line - 1}: unknown word ${name} after ${language}`);
  }
  const file = options.get('file');
  if (file !== undefined) return [{ kind: 'file', line, name: file, text: `${text.join('\n')}\n` }];
  if (language !== 'console' || options.has('needs')) return [];
  const commands = toCommands(text, line);
  // Only the last one of a block goes on.
  return commands.map((one, i) => ({
    ...one,
    isBackground: options.has('background') && i === commands.length - 1,
  }));
}

function toCommands(text: readonly string[], line: number) {
  const commands: { kind: 'command'; line: number; command: string; printed: string[] }[] = [];
  for (const [index, one] of text.entries()) {
    const last = commands.at(-1);
    if (one.startsWith('$ '))
      commands.push({ kind: 'command', line: line + index, command: one.slice(2), printed: [] });
    else if (last === undefined) throw new Error(`line ${line + index}: a console block begins with "$ "`);
    else if (last.printed.length === 0 && last.command.endsWith('\\')) last.command += `\n${one}`;
    else last.printed.push(one);
  }
  return commands;
}

/** The first line that was not printed, in order; undefined: all were. */
export function missingLine(output: string, printed: readonly string[]): string | undefined {
  const lines = output.split('\n');
  let at = 0;
  for (const wanted of printed.filter((line) => line.trim() !== '...')) {
    const pattern = new RegExp(
      `^${wanted
        .split(/ ?\.\.\. ?/)
        .map((part) => RegExp.escape(part))
        .join('.*')}$`,
    );
    const found = lines.findIndex((line, index) => index >= at && pattern.test(line.trimEnd()));
    if (found < 0) return wanted;
    at = found + 1;
  }
  return undefined;
}

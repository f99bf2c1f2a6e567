// `install_command` and `build_command` of a deployment as the programs to start. No shell reads them: words are separated by
// spaces, programs by `&&`, and a word in single quotes is one word. Pure.
import { posix } from 'node:path';

export type PlannedCommand = {
  readonly words: readonly string[];
  /** Relative to the root of the source; empty: the root itself. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
};

export type ParsedCommands =
  | { readonly ok: true; readonly commands: readonly PlannedCommand[] }
  | { readonly ok: false; readonly problem: string };

/** What the public clients refuse; the API refuses it too, and revisions of before may have it. */
// oxlint-disable-next-line no-control-regex
const FORBIDDEN = /["`\\\n\r\0\t|;$><]|(?<!&)&(?!&)|&{3,}/;
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;

/** Why no builder runs it, wherever it begins; undefined: it is a command, or none at all. */
export function findCommandProblem(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  for (const part of text.split('&&')) {
    const words = toWords(part);
    if (words === undefined) return 'A single quote must be closed';
    const program = words.find((word) => !ASSIGNMENT.test(word));
    if (program === undefined) return 'A program must be on both sides of each &&, also after NAME=value';
    const rest = words.slice(words.indexOf(program) + 1);
    if (program === 'cd' && rest.length !== 1) return 'cd must have one directory';
  }
  return undefined;
}

/** `directory`: where the first program starts. `cd` is understood, `NAME=value` before a program too. */
export function parseCommands(text: string, directory: string): ParsedCommands {
  const [forbidden] = FORBIDDEN.exec(text) ?? [];
  if (forbidden !== undefined)
    return failed(`it contains ${JSON.stringify(forbidden)}, and no shell runs it`);
  const commands: PlannedCommand[] = [];
  let at = directory;
  for (const part of text.split('&&')) {
    const words = toWords(part);
    if (words === undefined) return failed('a single quote is not closed');
    const env: Record<string, string> = {};
    while (words.length > 0) {
      const [, name, value = ''] = ASSIGNMENT.exec(words[0] ?? '') ?? [];
      if (name === undefined) break;
      env[name] = value;
      words.shift();
    }
    if (words.length === 0) return failed('a program is missing');
    if (words[0] === 'cd') {
      const next = words.length === 2 ? enter(at, words[1] ?? '') : undefined;
      if (next === undefined) return failed('cd needs one directory within the source');
      at = next;
    } else commands.push({ words, directory: at, env });
  }
  return { ok: true, commands };
}

function toWords(part: string): string[] | undefined {
  if (part.split("'").length % 2 === 0) return undefined;
  const found = part.match(/(?:[^ ']|'[^']*')+/g) ?? [];
  return found.map((word) => word.replaceAll("'", ''));
}

/** Undefined: not within the source. */
export function enter(directory: string, path: string): string | undefined {
  if (posix.isAbsolute(path)) return undefined;
  const entered = posix.normalize(posix.join(directory, path)).replace(/\/$/, '');
  if (entered === '..' || entered.startsWith('../')) return undefined;
  return entered === '.' ? '' : entered;
}

function failed(problem: string): ParsedCommands {
  return { ok: false, problem };
}

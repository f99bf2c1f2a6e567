// Makes the command of a row executable: paths in place of the names in braces, and an environment that holds nothing else.
import { join } from 'node:path';
import type { ClientRow, Command } from './client-row.ts';
import { folderOf } from './installation/installer.ts';
import { installations } from './installation/installations.ts';

const programs = join(import.meta.dirname, 'programs');

/** `{node}`, `{programs}`, `{scratch}`, and each installation by its name. */
export function toShellLine(command: Command, scratch: string): string {
  return command.replaceAll(/(?<!\$)\{([a-z][\w-]*)\}/g, (text, name: string) => {
    if (name === 'node') return process.execPath;
    if (name === 'programs') return programs;
    if (name === 'scratch') return scratch;
    return Object.hasOwn(installations, name) ? folderOf(name) : text;
  });
}

/** What a login shell has, and the settings of the program. Home is empty, so that no file of the user has an effect. */
export function bareEnvironment(
  settings: ClientRow['settings'],
  scratch: string,
): Readonly<Record<string, string>> {
  const { PATH = '/usr/bin:/bin', JAVA_HOME } = process.env;
  const own = Object.entries(settings ?? {}).map(([name, value]) => [name, toShellLine(value, scratch)]);
  return {
    HOME: join(scratch, 'home'),
    PATH,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    TMPDIR: '/tmp',
    ...(JAVA_HOME !== undefined && { JAVA_HOME }),
    ...Object.fromEntries(own),
  };
}

// The programs that need variables or files of their own, besides those that most clients read. Each can be left out.
import { InputError } from '../../base/input-error.ts';

export const programs = [
  'apt',
  'httplib2',
  'java',
  'node',
  'npm',
  'perl',
  'php',
  'websocket',
  'wget',
  'yarn',
] as const;

export type Program = (typeof programs)[number];

/** The programs that `--without` leaves in the list. Throws an InputError for a name that is not in it. */
export function programsWithout(list: string | undefined): ReadonlySet<Program> {
  const names = (list ?? '').split(',').map((name) => name.trim());
  const without = names.filter((name) => name !== '');
  const unknown = without.find((name) => !programs.some((program) => program === name));
  if (unknown !== undefined)
    throw new InputError(`--without: ${unknown} is not in the list: ${programs.join(', ')}`);
  return new Set(programs.filter((program) => !without.includes(program)));
}

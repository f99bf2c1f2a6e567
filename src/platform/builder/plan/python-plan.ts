// What `dependencies` of the configuration asks for: packages of Python, in a virtual environment beside the configuration. A
// directory that is no project of Python needs nothing: that of a JavaScript deployment names itself. Pure.
import { type PlannedCommand, enter } from '../../deployments/command-text.ts';

/** Files of a directory of the source that pip reads, relative to the root. */
export type HasFile = (path: string) => boolean;

export type PythonPlan =
  | { readonly ok: true; readonly commands: readonly PlannedCommand[] }
  | { readonly ok: false; readonly problem: string };

const ENVIRONMENT = '.venv';
const PROJECT_FILES = ['pyproject.toml', 'setup.py', 'setup.cfg'];
const REQUIREMENTS = 'requirements.txt';

/** `directory`: of the configuration. No command: nothing of Python is asked for. */
export function planPython(dependencies: readonly string[], directory: string, hasFile: HasFile): PythonPlan {
  const installed: string[] = [];
  for (const [at, text] of dependencies.entries()) {
    const problem = (msg: string) => ({ ok: false as const, problem: `dependencies[${at}]: ${msg}` });
    if (text.startsWith('-') || text.trim() !== text || text === '')
      return problem('must be a package or a directory, and no option of pip');
    if (!/^\.{1,2}(?:\/|$)/.test(text)) {
      installed.push(text);
      continue;
    }
    const local = enter(directory, text);
    if (local === undefined) return problem('is outside of the archive');
    const fileOf = (name: string): string => (local === '' ? name : `${local}/${name}`);
    if (hasFile(fileOf(REQUIREMENTS)))
      installed.push('--requirement', `${text.replace(/\/$/, '')}/${REQUIREMENTS}`);
    if (PROJECT_FILES.some((name) => hasFile(fileOf(name)))) installed.push(text);
  }
  if (installed.length === 0) return { ok: true, commands: [] };
  const command = (words: readonly string[]): PlannedCommand => ({ words, directory, env: {} });
  return {
    ok: true,
    commands: [
      command(['python3', '-m', 'venv', ENVIRONMENT]),
      command([`${ENVIRONMENT}/bin/python`, '-m', 'pip', 'install', '--no-input', ...installed]),
    ],
  };
}

// As whom the programs of PostgreSQL run: they refuse root. It knows no data directory but by its owner.
import { execFile } from 'node:child_process';
import { lstat } from 'node:fs/promises';

/** Undefined: whoever we are. */
export type Account = { readonly uid: number; readonly gid: number } | undefined;

/** Present on every system, and initdb asks for an account that has a name. */
const NOBODY = 65_534;

/** For root, the owner of the first of `paths` that is there and another's than root's; else nobody. */
export async function chooseAccount(paths: readonly string[]): Promise<Account> {
  if (process.getuid?.() !== 0) return undefined;
  for (const path of paths) {
    const owner = await lstat(path).catch(() => undefined);
    if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  }
  return { uid: NOBODY, gid: NOBODY };
}

export type Outcome = { readonly code: number | undefined; readonly stdout: string; readonly stderr: string };

/** Runs one of the programs to its end; `code` is undefined for one that could not be started. */
export function runProgram(
  program: string,
  args: readonly string[],
  { account, libraries }: { readonly account: Account; readonly libraries?: string | undefined },
): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { ...account, env: programEnvironment(libraries), cwd: '/' };
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined;
      resolve({ code, stdout, stderr });
    });
  });
}

/** Nothing of ours: it may hold secrets, and PG… variables would steer the programs. */
export function programEnvironment(libraries: string | undefined): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    LC_ALL: 'C',
    ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }),
  };
}

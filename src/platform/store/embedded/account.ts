// The operating system account that runs the PostgreSQL programs. They refuse to run as root.
import { execFile } from 'node:child_process';
import { lstat } from 'node:fs/promises';

/** Undefined: the account of this process. */
export type Account = { readonly uid: number; readonly gid: number } | undefined;

/** The user `nobody`. It exists on every system, and initdb requires an account that has a name. */
const NOBODY = 65_534;

/** For root: the owner of the first of `paths` that exists and is not owned by root, otherwise `nobody`. */
export async function chooseAccount(paths: readonly string[]): Promise<Account> {
  if (process.getuid?.() !== 0) return undefined;
  for (const path of paths) {
    const owner = await lstat(path).catch(() => undefined);
    if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  }
  return { uid: NOBODY, gid: NOBODY };
}

export type ProgramResult = {
  /** The exit code; undefined when the program could not be started. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs a program and waits for its end. */
export function runProgram(
  program: string,
  args: readonly string[],
  { account, libraries }: { readonly account: Account; readonly libraries?: string | undefined },
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const options = { ...account, env: programEnvironment(libraries), cwd: '/' };
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined;
      resolve({ code, stdout, stderr });
    });
  });
}

/** Nothing is inherited: our environment may hold secrets, and `PG…` variables would configure the programs. */
export function programEnvironment(libraries: string | undefined): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    LC_ALL: 'C',
    ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }),
  };
}

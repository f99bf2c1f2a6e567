// The cluster: made once by initdb, and opened only by the major version that made it. It starts no server.
import { chown, mkdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../database-error.ts';
import { type Account, runProgram } from './account.ts';
import { type DataDirectory, explainError } from './data-directory.ts';
import type { PostgresPrograms } from './programs.ts';

export type ClusterOptions = {
  /** The user that owns all. */
  readonly user: string;
  readonly password: string;
  readonly isDurable: boolean;
};

/** The major version that made the cluster; undefined where there is none. */
export async function readClusterVersion({
  cluster,
}: Pick<DataDirectory, 'cluster'>): Promise<number | undefined> {
  const text = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : Number.parseInt(text, 10);
}

export function refuseOtherVersion({ path }: DataDirectory, made: number, programs: PostgresPrograms): void {
  if (made === programs.major) return;
  throw new Error(
    `The database in ${path} was made by PostgreSQL ${made} and this is ${programs.major}: dump it with the version before, or set DATABASE_URL to a server of version ${made}`,
  );
}

/** Beside its place first: a cluster that is half made, because we died meanwhile, is never used. */
export async function makeCluster(
  directory: DataDirectory,
  programs: PostgresPrograms,
  options: ClusterOptions,
): Promise<void> {
  const unfinished = `${directory.cluster}.new`;
  const passwordFile = join(directory.path, 'initdb-password');
  try {
    await makeEmpty(unfinished, directory.account);
    await rm(passwordFile, { force: true });
    await writeFile(passwordFile, options.password, { mode: 0o600, flag: 'wx' });
    if (directory.account) await chown(passwordFile, directory.account.uid, directory.account.gid);
    await runInitdb(directory, programs, [
      `--pgdata=${unfinished}`,
      `--pwfile=${passwordFile}`,
      `--username=${options.user}`,
      ...(options.isDurable ? [] : ['--no-sync']),
    ]);
    await rm(passwordFile);
    await rename(unfinished, directory.cluster);
  } catch (error) {
    throw explainError(directory.path, error);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** A directory of the account's own. What was in it goes by the account's hand: it could lead root's elsewhere. */
async function makeEmpty(path: string, account: Account): Promise<void> {
  await runProgram('/bin/rm', ['-rf', path], { account });
  await rmdir(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  await mkdir(path, { mode: 0o700 });
  if (account !== undefined) await chown(path, account.uid, account.gid);
}

async function runInitdb(
  { path, account }: DataDirectory,
  programs: PostgresPrograms,
  args: readonly string[],
): Promise<void> {
  const { code, stderr } = await runProgram(
    programs.initdb,
    [
      ...args,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      // Upper and lower case of all letters, and the same on every system.
      ...(programs.major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : []),
      '--no-instructions',
    ],
    { account, libraries: programs.libraries },
  );
  if (code === 0) return;
  const [, reason = 'initdb failed'] = /(?:error|FATAL): +(.+)/.exec(stderr) ?? [];
  throw new Error(`The database could not be made in ${path}: ${reason}`);
}

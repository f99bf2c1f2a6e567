// The database cluster: created once by initdb, and opened only by the major version of PostgreSQL that created it.
import { chown, mkdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../database-error.ts';
import { type Account, runProgram } from './account.ts';
import type { DataDirectory } from './data-directory.ts';
import type { PostgresPrograms } from './programs.ts';

export type ClusterOptions = {
  /** The superuser. */
  readonly user: string;
  readonly password: string;
  readonly isDurable: boolean;
};

/** The major version that created the cluster; undefined when there is no cluster. */
export async function readClusterVersion(cluster: string): Promise<number | undefined> {
  const text = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : Number.parseInt(text, 10);
}

export function refuseOtherVersion({ path }: DataDirectory, created: number, { major }: PostgresPrograms) {
  if (created === major) return;
  throw new Error(
    `The database in ${path} was created by PostgreSQL ${created}, and this is PostgreSQL ${major}: dump it with the previous version, or set DATABASE_URL to a server of version ${created}`,
  );
}

/** Built next to its final path and then renamed, so that a cluster is never used when we died while creating it. */
export async function createCluster(
  directory: DataDirectory,
  programs: PostgresPrograms,
  options: ClusterOptions,
): Promise<void> {
  const unfinished = `${directory.cluster}.new`;
  const passwordFile = join(directory.path, 'initdb-password');
  try {
    await createEmptyDirectory(unfinished, directory.account);
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
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** The account itself deletes what was there: its files could contain links that lead root elsewhere. */
async function createEmptyDirectory(path: string, account: Account): Promise<void> {
  await runProgram('/bin/rm', ['-rf', path], { account });
  await rmdir(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  await mkdir(path, { mode: 0o700 });
  if (account !== undefined) await chown(path, account.uid, account.gid);
}

async function runInitdb(
  { path, account }: DataDirectory,
  { initdb, major, libraries }: PostgresPrograms,
  args: readonly string[],
): Promise<void> {
  const options = [
    ...args,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    // Case conversion for all letters, with the same result on every system.
    ...(major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : []),
    '--no-instructions',
  ];
  const { code, stderr } = await runProgram(initdb, options, { account, libraries });
  if (code === 0) return;
  const [, reason = 'initdb failed'] = /(?:error|FATAL): +(.+)/.exec(stderr) ?? [];
  throw new Error(`The database could not be created in ${path}: ${reason}`);
}

// The data directory: whose it is, what lies in it, and the cluster in it. It starts no server.
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from '../../base/schema.ts';
import { type Account, chooseAccount, runProgram } from './postgres-account.ts';
import type { PostgresPrograms } from './postgres-programs.ts';

export const OWNER = 'sallyport';
export const RUNTIME = 'sallyport_app';

export type DataDirectory = {
  readonly path: string;
  readonly cluster: string;
  readonly account: Account;
};

export type Passwords = { readonly owner: string; readonly runtime: string };

/** Of a socket's path in bytes: 104 with the closing NUL on BSD and macOS, 108 on Linux. */
const MAX_SOCKET_PATH = 103;

export async function openDirectory(path: string): Promise<DataDirectory> {
  const excess = Buffer.byteLength(socketPath(path)) - MAX_SOCKET_PATH;
  if (excess > 0)
    throw new Error(
      `The data directory ${path} has a path that is ${excess} bytes too long for a unix socket`,
    );
  await mkdir(path, { recursive: true, mode: 0o700 });
  const account = await chooseAccount(path);
  await chmod(path, 0o700);
  if (account && !(await canReach(path, account)))
    throw new Error(
      `The database runs as uid ${account.uid}, because it may not run as root, and ${path} lies in a directory that this user may not enter`,
    );
  return { path, cluster: join(path, 'cluster'), account };
}

async function canReach(path: string, account: Account): Promise<boolean> {
  const { code } = await runProgram('/bin/sh', ['-c', 'cd "$1"', 'sh', path], {
    account,
    libraries: undefined,
  });
  return code === 0;
}

export function socketPath(directory: string): string {
  return join(directory, '.s.PGSQL.5432');
}

const passwordFile = z.object({ owner: z.string().min(1), runtime: z.string().min(1) });

/** Made with the directory, and kept in it, for us alone. */
export async function readPasswords({ path }: DataDirectory): Promise<Passwords> {
  const file = join(path, 'passwords.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text !== undefined) return passwordFile.parse(JSON.parse(text));
  const made = { owner: createPassword(), runtime: createPassword() };
  await writeFile(`${file}.new`, JSON.stringify(made), { mode: 0o600 });
  await rename(`${file}.new`, file);
  return made;
}

function createPassword(): string {
  return randomBytes(24).toString('base64url');
}

/** Makes the cluster where there is none: beside its place first, so that one which is half made is never used. */
export async function makeCluster(
  directory: DataDirectory,
  programs: PostgresPrograms,
  options: { readonly password: string; readonly isDurable: boolean },
): Promise<void> {
  if (await hasCluster(directory.cluster)) return;
  const unfinished = `${directory.cluster}.new`;
  const passwordFile = join(directory.path, 'initdb-password');
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, options.password, { mode: 0o600 });
  if (directory.account) await chown(passwordFile, directory.account.uid, directory.account.gid);
  try {
    const { code, stderr } = await runProgram(
      programs.initdb,
      [
        `--pgdata=${unfinished}`,
        `--username=${OWNER}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        ...(programs.major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : []),
        '--no-instructions',
        ...(options.isDurable ? [] : ['--no-sync']),
      ],
      { account: directory.account, libraries: programs.libraries },
    );
    if (code !== 0)
      throw new Error(`The database could not be made in ${directory.path}: ${lastLine(stderr)}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(unfinished, directory.cluster);
}

async function hasCluster(cluster: string): Promise<boolean> {
  return (await stat(join(cluster, 'PG_VERSION')).catch(() => undefined)) !== undefined;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

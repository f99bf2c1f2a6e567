// The data directory: its owner, its contents and the reasons why it cannot be used.
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseJsonDocument } from '../../../base/json/json-document.ts';
import { parseWith, z } from '../../../base/schema.ts';
import { codeOf } from '../database-error.ts';
import { type Account, chooseAccount, runProgram } from './account.ts';
import { LOCK_FILE } from './directory-lock.ts';

export type DataDirectory = {
  /** Owned by us. The account may enter it and not write to it, or it could redirect what root writes with a link. */
  readonly path: string;
  /** What PostgreSQL calls its data directory, with the socket of the server. Owned by the account. */
  readonly cluster: string;
  readonly account: Account;
};

/** Of a socket path in bytes: BSD and macOS allow 104 with the closing NUL, Linux 108. */
const MAX_SOCKET_PATH = 103;

export async function openDirectory(path: string): Promise<DataDirectory> {
  const cluster = join(path, 'cluster');
  const excess = Buffer.byteLength(join(cluster, '.s.PGSQL.5432')) - MAX_SOCKET_PATH;
  if (excess > 0)
    throw new Error(
      `The path of the data directory ${path} must be ${excess} bytes shorter: it contains a unix socket`,
    );
  try {
    await createDirectory(path, 0o700);
    await refuseForeignFiles(path);
    const account = await chooseAccount([cluster, path]);
    if (account !== undefined) await chown(path, 0, account.gid);
    await chmod(path, account === undefined ? 0o700 : 0o710);
    await refuseUnreachable(path, account);
    return { path, cluster, account };
  } catch (error) {
    throw explainError(path, error);
  }
}

// mkdir's own `recursive` reports ENOENT on a read-only disk and never ends in /proc.
export async function createDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path);
    await chmod(path, mode);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    // The account of the server must be able to enter the parent directories that we create.
    await createDirectory(dirname(path), 0o711);
    await mkdir(path).catch((again: unknown) => {
      // Another process created it first; the lock decides between the two.
      if (codeOf(again) !== 'EEXIST') throw again;
    });
    await chmod(path, mode);
  }
}

// Its mode changes next, which must not happen to a directory that is used for something else.
async function refuseForeignFiles(path: string): Promise<void> {
  const names = await readdir(path);
  if (names.length > 0 && !names.includes(LOCK_FILE))
    throw new Error(`${path} contains other files than a Sallyport database: name an empty directory`);
}

async function refuseUnreachable(path: string, account: Account): Promise<void> {
  if (account === undefined) return;
  const { code } = await runProgram('/bin/sh', ['-c', 'cd "$1"', 'sh', path], { account });
  if (code !== 0)
    throw new Error(
      `PostgreSQL must not run as root, so it runs as user ${account.uid}, who may not enter a directory above ${path}. Name another directory, for example /var/lib/sallyport`,
    );
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOTDIR: 'a part of its path is a file',
  ENOENT: 'it cannot be created there',
};

/** Turns a file system error into a sentence about the directory; returns any other error unchanged. */
export function explainError(path: string, error: unknown): unknown {
  const reason = REASONS[codeOf(error) ?? ''];
  return reason === undefined ? error : new Error(`The data directory ${path}: ${reason}`, { cause: error });
}

const passwordFile = z.object({ owner: z.string().min(1), runtime: z.string().min(1) });

export type Passwords = z.infer<typeof passwordFile>;

/** Created before the cluster, in a file that only we can read. */
export async function readPasswords(path: string, hasCluster: boolean): Promise<Passwords> {
  const file = join(path, 'passwords.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined && !hasCluster) return createPasswords(file);
  const json = parseJsonDocument(text ?? '');
  const parsed = json.ok ? parseWith(passwordFile, json.value) : undefined;
  if (parsed?.ok) return parsed.value;
  throw new Error(
    `${file} is missing or damaged. The database cannot be opened without it: restore the file`,
  );
}

async function createPasswords(file: string): Promise<Passwords> {
  const passwords = { owner: createPassword(), runtime: createPassword() };
  await writeFile(`${file}.new`, JSON.stringify(passwords), { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  return passwords;
}

function createPassword(): string {
  return randomBytes(24).toString('base64url');
}

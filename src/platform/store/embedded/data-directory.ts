// The data directory: whose it is, what lies in it, and what may be wrong with it. It starts no program.
import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseJsonDocument } from '../../../base/json-document.ts';
import { parseWith, z } from '../../../base/schema.ts';
import { codeOf } from '../database-error.ts';
import { LOCK_FILE } from './directory-lock.ts';
import { type Account, chooseAccount, runProgram } from './account.ts';

export type DataDirectory = {
  /** Ours: the account may pass through it and write nothing, or it could lead what root writes elsewhere by a link. */
  readonly path: string;
  /** What PostgreSQL calls its data directory. The account's own, with its socket. */
  readonly cluster: string;
  readonly account: Account;
};

export type Passwords = { readonly owner: string; readonly runtime: string };

/** Of a socket's path in bytes: BSD and macOS have room for 104 with the closing NUL, Linux for 108. */
const MAX_SOCKET_PATH = 103;

export async function openDirectory(path: string): Promise<DataDirectory> {
  const cluster = join(path, 'cluster');
  const excess = Buffer.byteLength(join(cluster, '.s.PGSQL.5432')) - MAX_SOCKET_PATH;
  if (excess > 0)
    throw new Error(`The data directory ${path} needs a path that is ${excess} bytes shorter: unix sockets`);
  try {
    await makeDirectory(path, 0o700);
    await refuseForeign(path);
    const account = await chooseAccount([cluster, path]);
    if (account !== undefined) await chown(path, 0, account.gid);
    await chmod(path, account === undefined ? 0o700 : 0o710);
    await refuseUnreachable(path, account);
    return { path, cluster, account };
  } catch (error) {
    throw explainError(path, error);
  }
}

// Not by mkdir's own `recursive`, which says ENOENT of a read-only disk and never ends in /proc.
async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path);
    await chmod(path, mode);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    // A parent that is ours to make can be entered by the account that the server has.
    await makeDirectory(dirname(path), 0o711);
    await mkdir(path).catch((again: unknown) => {
      // Another start was faster; the lock will tell.
      if (codeOf(again) !== 'EEXIST') throw again;
    });
    await chmod(path, mode);
  }
}

// It is about to be closed to all others.
async function refuseForeign(path: string): Promise<void> {
  const names = await readdir(path);
  if (names.length > 0 && !names.includes(LOCK_FILE))
    throw new Error(`${path} holds other things than a database of this program: name an empty directory`);
}

async function refuseUnreachable(path: string, account: Account): Promise<void> {
  if (account === undefined) return;
  const { code } = await runProgram('/bin/sh', ['-c', 'cd "$1"', 'sh', path], { account });
  if (code !== 0)
    throw new Error(
      `The database may not run as root, so it runs as user ${account.uid}, who may not enter a directory above ${path}. Name another, such as /var/lib/sallyport`,
    );
}

const ERRORS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'it may not be written',
  EPERM: 'it may not be written',
  ENOTDIR: 'a part of its path is a file',
  ENOENT: 'it cannot be made there',
};

/** A fault of the file system as a sentence about the directory; anything else as it is. */
export function explainError(path: string, error: unknown): unknown {
  const what = ERRORS[codeOf(error) ?? ''];
  return what === undefined ? error : new Error(`The data directory ${path}: ${what}`, { cause: error });
}

const passwordFile: z.ZodType<Passwords> = z.object({
  owner: z.string().min(1),
  runtime: z.string().min(1),
});

/** Made before the cluster, and kept for us alone beside it. */
export async function readPasswords(
  { path }: Pick<DataDirectory, 'path'>,
  hasCluster: boolean,
): Promise<Passwords> {
  const file = join(path, 'passwords.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined && !hasCluster) return makePasswords(file);
  const json = parseJsonDocument(text ?? '');
  const parsed = json.ok ? parseWith(passwordFile, json.value) : undefined;
  if (parsed?.ok) return parsed.value;
  throw new Error(
    `${file} is missing or damaged, and the database can only be opened by what was in it: restore it`,
  );
}

async function makePasswords(file: string): Promise<Passwords> {
  const made = { owner: createPassword(), runtime: createPassword() };
  await writeFile(`${file}.new`, JSON.stringify(made), { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  return made;
}

function createPassword(): string {
  return randomBytes(24).toString('base64url');
}

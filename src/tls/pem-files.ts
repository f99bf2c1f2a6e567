// Files with keys and certificates: created whole and never over another file. A key is read only if no other user can
// read it.
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, rmSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, lstat, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A file to create. The mode is given to open(): a key must not be readable by others even for a moment. */
export type FileDraft = {
  readonly file: string;
  readonly text: string | Uint8Array;
  readonly mode: number;
  /** By default the user of this process. The file has this owner before it has its name: nobody can put another in between. */
  readonly owner?: FileOwner | undefined;
};

export type FileOwner = Pick<Stats, 'uid' | 'gid'>;

const NAME_A_PAIR =
  'Use a certificate and its key that this user can read; if one of the two is lost, remove the other';

/** An Error for the operator: the file, what was found there, and what to do. */
export function fileError(file: string, found: string, hint: string, cause?: unknown): Error {
  return new Error(`${file}: ${found}. ${hint}.`, { cause });
}

/** Reads a file that other users may read too. */
export async function readCertificateFile(file: string): Promise<string> {
  return readText(file, () => undefined, NAME_A_PAIR);
}

/** What to do about a key file that cannot be read, and about one that other users may have read. */
export type KeyAdvice = { readonly unreadable: string; readonly exposed: string };

const ABOUT_A_PAIR: KeyAdvice = {
  unreadable: NAME_A_PAIR,
  exposed: 'replace the pair if they may have read it',
};

/** Reads a private key file. Rejects one that group or others may read or write, or that another user owns. */
export async function readKeyFile(file: string, advice: KeyAdvice = ABOUT_A_PAIR): Promise<string> {
  const examine = ({ mode, uid }: Stats): void => {
    const ours = process.getuid?.() ?? uid;
    if (uid !== ours && uid !== 0) {
      const found = `the key belongs to uid ${uid}, but this process runs as uid ${ours}`;
      throw fileError(file, found, `chown ${ours} ${file}`);
    }
    if ((mode & 0o077) !== 0) {
      const found = `mode 0${(mode & 0o777).toString(8)} gives other users access to the key`;
      throw fileError(file, found, `chmod 0600 ${file}, and ${advice.exposed}`);
    }
  };
  return readText(file, examine, advice.unreadable);
}

/** Whether the name is taken, also by a file that cannot be read or by a dangling link. */
export async function isPresent(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/**
 * Creates a directory with those above it. Returns the first that was created, or undefined if all were there. Node's `recursive` never
 * returns where mkdir() responds with ENOENT below a directory that exists, as in /proc.
 */
export function createDirectories(directory: string, mode: number): string | undefined {
  try {
    mkdirSync(directory, { mode });
    return directory;
  } catch (error) {
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return undefined;
    const parent = dirname(directory);
    const isBelowNothing = codeOf(error) === 'ENOENT' && !existsSync(parent);
    if (!isBelowNothing || parent === directory) throw error;
    const first = createDirectories(parent, mode);
    const own = createDirectories(directory, mode);
    return first ?? own;
  }
}

/**
 * Creates all files or none, durable once the promise settles; missing directories get mode 0700. Returns false if a
 * name is taken: another process was faster.
 */
export async function createFiles(drafts: readonly FileDraft[]): Promise<boolean> {
  const staged: { readonly temporary: string; readonly file: string }[] = [];
  try {
    for (const { file, text, mode, owner } of drafts) {
      createDirectories(dirname(file), 0o700);
      const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
      await using handle = await open(temporary, 'wx', mode);
      staged.push({ temporary, file });
      // The umask may have kept other users out of a file that they are to read.
      await handle.chmod(mode);
      if (owner !== undefined) await handle.chown(owner.uid, owner.gid);
      await handle.writeFile(text);
      await handle.sync();
    }
    if (!publish(staged)) return false;
    for (const { file } of drafts) await syncDirectory(dirname(file));
    return true;
  } finally {
    for (const { temporary } of staged) await rm(temporary, { force: true });
  }
}

/** link() fails for a name that is taken; rename() would replace it. No await: no one may find half of the files. */
function publish(staged: readonly { readonly temporary: string; readonly file: string }[]): boolean {
  const linked: string[] = [];
  try {
    for (const { temporary, file } of staged) {
      linkSync(temporary, file);
      linked.push(file);
    }
    return true;
  } catch (error) {
    for (const file of linked) rmSync(file);
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** A file name survives a power cut only once its directory is on disk. */
export async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r');
  await handle.sync();
}

/** `examine` gets the stats of the open file: the path could point elsewhere between a check and the reading. */
async function readText(file: string, examine: (stats: Stats) => void, hint: string): Promise<string> {
  await using handle = await openToRead(file, hint);
  const stats = await handle.stat();
  if (!stats.isFile()) throw fileError(file, 'not a regular file', hint);
  examine(stats);
  return await handle.readFile('utf8');
}

async function openToRead(file: string, hint: string): Promise<FileHandle> {
  try {
    return await open(file, 'r');
  } catch (cause) {
    throw fileError(file, `cannot be opened (${codeOf(cause)})`, hint, cause);
  }
}

/** The code of a system error, for messages and decisions. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

// The key that seals the state: a variable's text, or a file that only we may read. Knows nothing of what it seals.
// Messages name the source and never what it holds.
import { randomBytes } from 'node:crypto';
import { sealKeyBytes } from '../../base/seal.ts';
import { createFiles, isPresent, type KeyAdvice, readKeyFile, fileError } from '../../tls/pem-files.ts';

/** `from` stands for the text in messages, such as the name of its variable. */
export type StateKeySource = { readonly file: string } | { readonly text: string; readonly from: string };

const WANTED = `${sealKeyBytes} random bytes as base64, base64url or hex`;
const RESTORE = 'Restore it from a copy, or begin anew by removing it together with the state that it sealed';
const ADVICE: KeyAdvice = {
  unreadable: RESTORE,
  exposed: 'if they may have read it, replace the secrets that the state holds and begin anew',
};

/** Undefined: the file is not there. Throws an Error if what is there is no key or can be read by others. */
export async function readStateKey(source: StateKeySource): Promise<Buffer | undefined> {
  if ('text' in source) {
    const key = parseStateKey(source.text);
    if (key === undefined) throw new Error(`${source.from}: should be ${WANTED} (openssl rand -base64 32)`);
    return key;
  }
  if (!(await isPresent(source.file))) return undefined;
  const key = parseStateKey(await readKeyFile(source.file, ADVICE));
  if (key === undefined) throw fileError(source.file, `does not hold ${WANTED}`, RESTORE);
  return key;
}

/** Makes the file, or takes the key of whoever made it a moment earlier: two starts must not make two keys. */
export async function createStateKey(file: string): Promise<Buffer> {
  const key = randomBytes(sealKeyBytes);
  if (await createFiles([{ file, text: `${key.toString('base64')}\n`, mode: 0o600 }])) return key;
  const theirs = await readStateKey({ file });
  if (theirs === undefined) throw fileError(file, 'went away while it was read', 'Start again');
  return theirs;
}

/** One line end or other white space around it is forgiven: editors and `echo` write it. */
function parseStateKey(text: string): Buffer | undefined {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return Buffer.from(trimmed, 'hex');
  if (!/^([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?$/.test(trimmed)) return undefined;
  const key = Buffer.from(trimmed, 'base64');
  // The last letter carries bits of nobody's; if they are set it was mistyped or cut.
  const isExact = key.toString('base64url').at(-1) === trimmed.at(42);
  return isExact ? key : undefined;
}

// The Ed25519 key that signs checkpoints: a file of the operator's, or one made on first use, readable by nobody else.
// Beside one that we make lies its public half, which is all that verification needs.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { link, open, readFile, stat, unlink } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { InputError } from '../../base/input-error.ts';

const PRIVATE_MODE = 0o600;
const PUBLIC_SUFFIX = '.pub';

/** The private key in `file`, which is made where there is none. */
export async function openSigningKey(file: string): Promise<KeyObject> {
  const pem = await readIfThere(file);
  if (pem === undefined) return makeKey(file);
  const { mode, uid } = await stat(file);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    throw new InputError(`${file}: others can read this key; chmod 600 it`);
  // Laid there by whoever may write the directory, it would sign what he likes.
  if (uid !== 0 && uid !== process.getuid?.())
    throw new InputError(`${file}: this key is another user's; chown it`);
  return readKey(file, () => createPrivateKey(pem));
}

/** The public key in `file`, or the public half of a private one. */
export async function readVerificationKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, 'utf8');
  return readKey(file, () => createPublicKey(pem));
}

/** Where the public half lies of a key that was made in `file`. */
export function publicKeyFile(file: string): string {
  return `${file}${PUBLIC_SUFFIX}`;
}

/** Several processes may come here at once: the first file stands, and all take that one. */
async function makeKey(file: string): Promise<KeyObject> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const draft = `${file}.${randomUUID()}`;
  await writeNew(draft, pemOf(privateKey, 'pkcs8'), PRIVATE_MODE);
  try {
    await link(draft, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return await openSigningKey(file);
  } finally {
    await unlink(draft);
  }
  await writeNew(publicKeyFile(file), pemOf(createPublicKey(privateKey), 'spki'), 0o644);
  return privateKey;
}

function pemOf(key: KeyObject, type: 'pkcs8' | 'spki'): string {
  return String(key.export({ type: type as 'spki', format: 'pem' }));
}

async function writeNew(file: string, text: string, mode: number): Promise<void> {
  const handle = await open(file, 'w', mode);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The parser's own message may quote what it read. */
function readKey(file: string, parse: () => KeyObject): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = parse();
  } catch {
    key = undefined;
  }
  if (key?.asymmetricKeyType !== 'ed25519') throw new InputError(`${file}: not an Ed25519 key in PEM`);
  return key;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

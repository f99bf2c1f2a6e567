// The Ed25519 key that signs checkpoints: a file that the operator provides, or one that is created on first use and that
// only its owner can read. The public key of a created key is stored next to it, and verification needs nothing else.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
} from 'node:crypto';
import { link, open, readFile, stat, unlink } from 'node:fs/promises';
import { InputError } from '../../base/input-error.ts';
import { codeOf } from '../store/database-error.ts';

/** The private key in `file`, which is created when it does not exist. */
export async function openSigningKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  if (pem === undefined) return createKey(file);
  const { mode, uid } = await stat(file);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    throw new InputError(`${file}: other users can read this key; run chmod 600 on it`);
  // Otherwise a user who can write to the directory could choose the signing key.
  if (uid !== 0 && uid !== process.getuid?.())
    throw new InputError(`${file}: this key belongs to another user; run chown on it`);
  return parseKey(file, () => createPrivateKey(pem));
}

/** The public key in `file`, or the public half of a private key. */
export async function readVerificationKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, 'utf8');
  return parseKey(file, () => createPublicKey(pem));
}

/** The file with the public half of the key that was created in `file`. */
export function publicKeyFile(file: string): string {
  return `${file}.pub`;
}

/** Several processes may create the key at once: link() succeeds for one of them, and the others use the key of that one. */
async function createKey(file: string): Promise<KeyObject> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const temporary = `${file}.${randomUUID()}`;
  await writeDurably(temporary, privateKey.export({ type: 'pkcs8', format: 'pem' }), 0o600);
  try {
    await link(temporary, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return await openSigningKey(file);
  } finally {
    await unlink(temporary);
  }
  await writeDurably(publicKeyFile(file), publicKey.export({ type: 'spki', format: 'pem' }), 0o644);
  return privateKey;
}

async function writeDurably(file: string, text: string | Buffer, mode: number): Promise<void> {
  await using handle = await open(file, 'w', mode);
  await handle.writeFile(text);
  await handle.sync();
}

/** The parser's own message is dropped: it may quote the key. */
function parseKey(file: string, parse: () => KeyObject): KeyObject {
  try {
    const key = parse();
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {}
  throw new InputError(`${file}: not an Ed25519 key in PEM`);
}

// What PostgreSQL stores for a password (RFC 5803, SCRAM-SHA-256). A server that gets the verifier instead of the password can write it
// neither to its log nor to that of its statistics.
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { Secret } from '../../../base/secret.ts';

const derive = promisify(pbkdf2);
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** A password of 24 random bytes cannot be guessed, however fast one attempt is. */
const ITERATIONS = 4_096;

/** `password`: of ASCII characters, which SASLprep leaves as they are. */
export async function createVerifier(
  password: Secret,
  salt: Buffer = randomBytes(SALT_BYTES),
): Promise<string> {
  const salted = await derive(password.reveal(), salt, ITERATIONS, KEY_BYTES, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}

// Encrypts and authenticates (seals) bytes with XChaCha20-Poly1305, whose nonces are long enough to be random without
// limit. The adapter of libsodium, which is loaded when something is first sealed or opened.
import { randomBytes } from 'node:crypto';
import type Sodium from 'libsodium-wrappers';

export const sealKeyBytes = 32;

const NONCE_BYTES = 24;
const TAG_BYTES = 16;

/** How many bytes sealing adds. */
export const sealOverheadBytes: number = NONCE_BYTES + TAG_BYTES;

export type Sealer = {
  /** `associated` names what is sealed and for whom. It is not stored; opening requires the same text. */
  seal(plain: Buffer, associated: string): Promise<Buffer>;
  /** Undefined: another key, another `associated`, or bytes that seal() did not return. */
  open(sealed: Buffer, associated: string): Promise<Buffer | undefined>;
};

export function createSealer(key: Buffer): Sealer {
  if (key.length !== sealKeyBytes) throw new Error(`a sealing key must have ${sealKeyBytes} bytes`);
  return {
    async seal(plain, associated) {
      const sodium = await loadSodium();
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, associated, null, nonce, key);
      return Buffer.concat([nonce, cipher]);
    },
    async open(sealed, associated) {
      if (sealed.length < sealOverheadBytes) return undefined;
      const sodium = await loadSodium();
      const nonce = sealed.subarray(0, NONCE_BYTES);
      const cipher = sealed.subarray(NONCE_BYTES);
      try {
        return Buffer.from(
          sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(null, cipher, associated, nonce, key),
        );
      } catch (error) {
        if (isForgery(error)) return undefined;
        throw error;
      }
    },
  };
}

// Any other error, such as out of memory, does not mean that the bytes are forged.
function isForgery(error: unknown): boolean {
  return error instanceof Error && error.message === 'ciphertext cannot be decrypted using that key';
}

// The default export, which exists in the checkout and in the bundle.
async function loadSodium(): Promise<typeof Sodium> {
  const { default: sodium } = await import('libsodium-wrappers');
  await sodium.ready;
  return sodium;
}

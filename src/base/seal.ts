// Encrypts and authenticates (seals) bytes with XChaCha20-Poly1305. Its nonces of 24 bytes can be random for any number of
// messages. The adapter of libsodium, which is loaded on first use.
import { randomBytes } from 'node:crypto';
import type Sodium from 'libsodium-wrappers';

export const sealKeyBytes = 32;

const NONCE_BYTES = 24;
const TAG_BYTES = 16;

/** How many bytes sealing adds. */
export const sealOverheadBytes: number = NONCE_BYTES + TAG_BYTES;

export type Sealer = {
  /** `associatedData` is authenticated but not stored: open() must get the same text. */
  seal(plaintext: Buffer, associatedData: string): Promise<Buffer>;
  /** Undefined: the key or `associatedData` differs, or seal() did not return these bytes. */
  open(sealed: Buffer, associatedData: string): Promise<Buffer | undefined>;
};

export function createSealer(key: Buffer): Sealer {
  if (key.length !== sealKeyBytes) throw new Error(`a sealing key must be ${sealKeyBytes} bytes long`);
  return {
    async seal(plaintext, associatedData) {
      const sodium = await loadSodium();
      const nonce = randomBytes(NONCE_BYTES);
      const ciphertext = sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(
        plaintext,
        associatedData,
        null,
        nonce,
        key,
      );
      return Buffer.concat([nonce, ciphertext]);
    },
    async open(sealed, associatedData) {
      if (sealed.length < sealOverheadBytes) return undefined;
      const sodium = await loadSodium();
      const nonce = sealed.subarray(0, NONCE_BYTES);
      const ciphertext = sealed.subarray(NONCE_BYTES);
      try {
        const plain = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(
          null,
          ciphertext,
          associatedData,
          nonce,
          key,
        );
        // The same memory: a caller that wipes the plaintext leaves no copy of it here.
        return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
      } catch (error) {
        if (isAuthenticationFailure(error)) return undefined;
        throw error;
      }
    },
  };
}

// Any other error, for example out of memory, does not mean that authentication failed.
function isAuthenticationFailure(error: unknown): boolean {
  return error instanceof Error && error.message === 'ciphertext cannot be decrypted using that key';
}

let loaded: typeof Sodium | undefined;

/** Once it has resolved, seal() and open() wait for nothing. */
export async function loadSodium(): Promise<typeof Sodium> {
  if (loaded !== undefined) return loaded;
  // Takes the default export, because it exists both in the checkout and in the bundle.
  const { default: sodium } = await import('libsodium-wrappers');
  await sodium.ready;
  loaded = sodium;
  return sodium;
}

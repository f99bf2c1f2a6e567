// A file of keys, one a line: whoever has one of them is let in as the owner of the server. It is read again whenever it has
// changed; while it cannot be read nobody is let in.
import type { BigIntStats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { DomainError } from '../../../base/domain-error.ts';
import { InputError } from '../../../base/input-error.ts';
import type { Log } from '../../../base/log.ts';
import { Secret } from '../../../base/secret.ts';
import type { KeyPort } from './keys.ts';

const MAX_BYTES = 256 * 1024;
const MIN_LENGTH = 16;
const MAX_LENGTH = 512;

/** Throws an InputError that names the file and the line, and never a key. */
export async function openKeyFile(file: string, log: Log): Promise<KeyPort> {
  const known = new KnownKeys(file);
  await known.read();
  const current = async (): Promise<readonly Secret[]> => {
    try {
      return await known.read();
    } catch (error) {
      log.error({ file, reason: reasonOf(error) }, 'the key file cannot be read: nobody is let in');
      throw new DomainError('unavailable', 'Keys cannot be checked at the moment: try again');
    }
  };
  return {
    async find(text) {
      const keys = await current();
      // Each is compared, so that the time shows neither which one it was nor how much of it was right.
      const found = keys.filter((key) => key.equals(text));
      return found[0] && { keyId: found[0].fingerprint(), identity: 'owner' };
    },
    async findRevoked(keyIds) {
      const keys = await current();
      return keyIds.difference(new Set(keys.map((key) => key.fingerprint())));
    },
  };
}

class KnownKeys {
  readonly #file: string;
  #version = '';
  #keys: readonly Secret[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** As the file is now. */
  async read(): Promise<readonly Secret[]> {
    if (versionOf(await stat(this.#file, { bigint: true })) === this.#version) return this.#keys;
    await using handle = await open(this.#file, 'r');
    const found = await handle.stat({ bigint: true });
    if ((found.mode & 0o007n) !== 0n)
      throw new InputError(`${this.#file}: everybody can read or change it; run chmod o= on it`);
    if (found.size > MAX_BYTES) throw new InputError(`${this.#file}: it has more than ${MAX_BYTES} bytes`);
    const text = (await handle.readFile()).toString('utf8');
    this.#keys = parseKeys(this.#file, text);
    // As it was before it was read: what changed meanwhile is read the next time.
    this.#version = versionOf(found);
    return this.#keys;
  }
}

function versionOf({ mode, size, ino, mtimeNs, ctimeNs }: BigIntStats): string {
  return [mode, ino, size, mtimeNs, ctimeNs].join('/');
}

/** Lines that are empty or begin with `#` are none. */
function parseKeys(file: string, text: string): readonly Secret[] {
  const lines = text.split('\n').map((line) => line.trim());
  const keys = lines.flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return [];
    if (line.length < MIN_LENGTH || line.length > MAX_LENGTH || !/^[\x21-\x7e]+$/.test(line))
      throw new InputError(
        `${file}: line ${index + 1} is no key: write ${MIN_LENGTH} to ${MAX_LENGTH} visible ASCII characters without spaces`,
      );
    return [new Secret(line)];
  });
  if (keys.length === 0) throw new InputError(`${file}: it has no key: write one a line`);
  return Secret.distinct(keys);
}

function reasonOf(error: unknown): string {
  return error instanceof InputError ? error.message : String((error as { readonly code?: unknown }).code);
}

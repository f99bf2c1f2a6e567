// Whether bytes that arrive in pieces are UTF-8, as JSON has to be (RFC 8259 §8.1): a piece may end within a character. Pure.
import { isUtf8 } from 'node:buffer';

export class Utf8Check {
  /** The beginning of a character that the next piece goes on with: at most three bytes. */
  #rest: Uint8Array = new Uint8Array();

  /** False once the text is not UTF-8. */
  push(piece: Uint8Array): boolean {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const end = bytes.length - unfinishedBytes(bytes);
    this.#rest = Uint8Array.from(bytes.subarray(end));
    return isUtf8(bytes.subarray(0, end));
  }

  /** False for a text that ends within a character. */
  end(): boolean {
    return this.#rest.length === 0;
  }
}

/** How many of the last bytes begin a character that needs more of them. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const size = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return size > back ? back : 0;
  }
  return 0;
}

// Bytes as the hexadecimal digits that COPY takes, in one buffer for all pieces of a copy: as much memory as all of a large value would
// otherwise wait for a collection of garbage.

/** The two digits of each byte, as they are in memory. */
const HEX_DIGITS = new Uint16Array(
  new TextEncoder().encode(
    Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0')).join(''),
  ).buffer,
);

export class HexText {
  readonly #isSent: () => boolean;
  #digits = new Uint16Array();

  /** `isSent`: nobody reads any more what was returned before. */
  constructor(isSent: () => boolean) {
    this.#isSent = isSent;
  }

  /** All digits at once: texts would be copied for the database. */
  of(bytes: Uint8Array): Buffer {
    if (bytes.length > this.#digits.length || !this.#isSent()) this.#digits = new Uint16Array(bytes.length);
    const digits = this.#digits;
    for (let at = 0; at < bytes.length; at += 1) digits[at] = HEX_DIGITS[bytes[at] as number] as number;
    return Buffer.from(digits.buffer, 0, 2 * bytes.length);
  }
}

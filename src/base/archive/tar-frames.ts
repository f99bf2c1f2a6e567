// Checks how a tar is cut into heads and contents, before tar-stream reads it: that never ends on a size that is no number,
// reads a negative one as the next head, and goes on behind the end of the archive, where other programs stop.
import { InputError } from '../input-error.ts';

const BLOCK = 512;
/** A name has at most 4,095 bytes, and a value is as long as the file system takes it. */
const MAX_DESCRIPTION_BYTES = 1024 * 1024;

/** Heads that describe the next entry. `N` is that of an old GNU tar. */
const DESCRIBING = 'xgLKN';
/** `\0` and `7` are files too. */
const WITH_CONTENT = `0\x007${DESCRIBING}`;
/** Others are refused by whoever reads the entry, and have what their size says. */
const WITHOUT_CONTENT = '123456';

export class TarFrames {
  readonly #head: Buffer = Buffer.alloc(BLOCK);
  #filled = 0;
  /** What is left of the content, with its padding. */
  #left = 0;
  /** The records of PAX that are being read. */
  #records: { readonly type: string; readonly bytes: Buffer; filled: number } | undefined;
  /** What they say about the size of the next entry. */
  #nextSize: number | undefined;
  #isEnded = false;

  /** Throws an InputError for what is no tar. */
  write(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      const rest = piece.subarray(at);
      at += this.#left > 0 ? this.#takeContent(rest) : this.#takeHead(rest);
    }
  }

  end(): void {
    if (this.#left > 0 || this.#filled > 0) throw damaged('it ends within an entry');
    if (!this.#isEnded) throw damaged('it has no end: the last two blocks are not zero');
  }

  #takeContent(rest: Uint8Array): number {
    const taken = Math.min(this.#left, rest.length);
    this.#left -= taken;
    const records = this.#records;
    if (records === undefined) return taken;
    records.bytes.set(
      rest.subarray(0, Math.min(taken, records.bytes.length - records.filled)),
      records.filled,
    );
    records.filled = Math.min(records.filled + taken, records.bytes.length);
    if (this.#left === 0) this.#readRecords(records);
    return taken;
  }

  #takeHead(rest: Uint8Array): number {
    const taken = Math.min(BLOCK - this.#filled, rest.length);
    this.#head.set(rest.subarray(0, taken), this.#filled);
    this.#filled += taken;
    if (this.#filled === BLOCK) {
      this.#filled = 0;
      this.#readHead();
    }
    return taken;
  }

  #readHead(): void {
    const isZero = this.#head.every((byte) => byte === 0);
    if (this.#isEnded && !isZero) throw damaged('something follows its end');
    if (isZero) {
      this.#isEnded = true;
      return;
    }
    requireChecksum(this.#head);
    const type = String.fromCharCode(this.#head[156] ?? 0);
    const own = parseSize(this.#head.subarray(124, 136));
    const isDescribing = DESCRIBING.includes(type);
    const size = isDescribing ? own : (this.#nextSize ?? own);
    if (!isDescribing) this.#nextSize = undefined;
    if (isDescribing && size > MAX_DESCRIPTION_BYTES)
      throw new InputError(
        `The archive has an entry with a head of more than ${MAX_DESCRIPTION_BYTES} bytes`,
      );
    if (size > 0 && hasNoContent(type, this.#head)) throw damaged('an entry that is no file has content');
    this.#left = Math.ceil(size / BLOCK) * BLOCK;
    const isRecords = (type === 'x' || type === 'g') && size > 0;
    this.#records = isRecords ? { type, bytes: Buffer.alloc(size), filled: 0 } : undefined;
  }

  #readRecords({ type, bytes }: { readonly type: string; readonly bytes: Buffer }): void {
    this.#records = undefined;
    for (const [key, value] of parseRecords(bytes)) {
      if (key.startsWith('GNU.sparse.'))
        throw new InputError('The archive has a sparse file: pack it without --sparse');
      if (key !== 'size') continue;
      if (type === 'g' || !/^\d{1,15}$/.test(value)) throw damaged('the size of an entry is not valid');
      this.#nextSize = Number(value);
    }
  }
}

/** tar-stream takes a file whose name ends with a slash for a directory. */
function hasNoContent(type: string, head: Buffer): boolean {
  if (WITHOUT_CONTENT.includes(type)) return true;
  if (!WITH_CONTENT.includes(type) || DESCRIBING.includes(type)) return false;
  const name = head.subarray(0, 100);
  const end = name.indexOf(0);
  const last = name[(end === -1 ? name.length : end) - 1];
  return last === undefined || last === 0x2f;
}

function requireChecksum(head: Buffer): void {
  const sum = head.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  const [, digits = ''] = /^ *([0-7]{1,7})[\0 ]/.exec(head.toString('latin1', 148, 157)) ?? [];
  if (digits === '' || Number.parseInt(digits, 8) !== sum) throw damaged('a head has another checksum');
}

/** Octal digits, or the binary form of sizes from 8 GiB. */
function parseSize(field: Buffer): number {
  if (field[0] === 0x80) {
    const size = field.subarray(1).reduce((value, byte) => value * 256 + byte, 0);
    if (Number.isSafeInteger(size)) return size;
  } else {
    const [, digits] = /^ *([0-7]*)[\0 ]*$/.exec(field.toString('latin1')) ?? [];
    if (digits !== undefined) return digits === '' ? 0 : Number.parseInt(digits, 8);
  }
  throw damaged('the size of an entry is not valid');
}

/** `<length> <key>=<value>\n`, where the length is that of the whole record. */
function* parseRecords(bytes: Buffer): Generator<readonly [string, string]> {
  for (let at = 0; at < bytes.length; ) {
    const [, digits = ''] = /^([1-9]\d{0,6}) /.exec(bytes.toString('latin1', at, at + 8)) ?? [];
    const length = Number(digits);
    const record = bytes.toString('utf8', at + digits.length + 1, at + length - 1);
    const equals = record.indexOf('=');
    if (digits === '' || at + length > bytes.length || equals < 1 || bytes[at + length - 1] !== 0x0a)
      throw damaged('the records of a head are not valid');
    yield [record.slice(0, equals), record.slice(equals + 1)];
    at += length;
  }
}

/** As for what the decompressors and tar-stream find. */
function damaged(reason: string): InputError {
  return new InputError(`The archive is no tar (plain, gzip or zstd) or is damaged: ${reason}`);
}

// Archives of the tests, as bytes. Their heads are written here: no library writes what a hostile archive contains.
import { createHash } from 'node:crypto';

export type ArchiveEntry = {
  readonly name: string;
  /** The byte of the head: '0' file, '1' hard link, '2' link, '3' and '4' devices, '5' directory, '6' named pipe. */
  readonly type?: string;
  readonly mode?: number;
  readonly target?: string;
  readonly content?: string | Uint8Array;
  /** When the head lies about it. */
  readonly size?: number;
};

const BLOCK = 512;

export function archive(entries: readonly ArchiveEntry[]): Buffer {
  return Buffer.concat([...entries.map(block), Buffer.alloc(2 * BLOCK)]);
}

function block({ name, type = '0', mode = 0o644, target = '', content = '', size }: ArchiveEntry): Buffer {
  const body = Buffer.from(content as string);
  const head = Buffer.alloc(BLOCK);
  head.write(name, 0, 100, 'utf8');
  head.write(octal(mode, 8), 100);
  head.write(octal(0, 8), 108);
  head.write(octal(0, 8), 116);
  head.write(octal(size ?? body.length, 12), 124);
  head.write(octal(1_700_000_000, 12), 136);
  head.write('        ', 148);
  head.write(type, 156);
  head.write(target, 157, 100, 'utf8');
  head.write('ustar\x0000', 257, 'latin1');
  head.write(octal(1, 8), 329);
  head.write(octal(3, 8), 337);
  writeChecksum(head);
  return Buffer.concat([head, body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)]);
}

function writeChecksum(head: Buffer): void {
  head.fill(' ', 148, 156);
  const sum = head.reduce((total, byte) => total + byte, 0);
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}

/** The archive with other bytes in its first head, whose checksum fits. */
export function withField(bytes: Buffer, at: number, value: string): Buffer {
  const changed = Buffer.from(bytes);
  changed.write(value, at, 'latin1');
  writeChecksum(changed.subarray(0, BLOCK));
  return changed;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

/** The records of a PAX head, which replace what the next head says. */
export function paxEntry(records: Readonly<Record<string, string>>): ArchiveEntry {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`;
    let length = Buffer.byteLength(rest) + 1;
    while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
    return `${length}${rest}`;
  });
  return { name: 'pax', type: 'x', content: lines.join('') };
}

/** In pieces of odd sizes, as a network would. */
export async function* inPieces(bytes: Uint8Array, size = 777): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

// The memory of a process, read as from a core dump: every writable page, as the kernel shows it. Linux only. Independent of
// the proxy.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const PIECE_BYTES = 1 << 20;

/** The number of copies of each text in the memory of the process, with one or two bytes per character. */
export function countInMemory(pid: number, texts: readonly string[]): number[] {
  const needles = texts.map((text) => [Buffer.from(text, 'latin1'), Buffer.from(text, 'utf16le')]);
  const counts = texts.map(() => 0);
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    for (const region of writableRegions(pid)) {
      eachPiece(memory, region, (piece) => {
        for (const [index, forms] of needles.entries())
          counts[index] = (counts[index] ?? 0) + forms.reduce((sum, form) => sum + countIn(piece, form), 0);
      });
    }
  } finally {
    closeSync(memory);
  }
  return counts;
}

export function countIn(bytes: Buffer, needle: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, at + 1)) count += 1;
  return count;
}

type Region = { readonly start: number; readonly end: number };

function writableRegions(pid: number): readonly Region[] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'latin1');
  return [...maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)].map(([, start = '', end = '']) => ({
    start: Number.parseInt(start, 16),
    end: Number.parseInt(end, 16),
  }));
}

function eachPiece(memory: number, { start, end }: Region, see: (piece: Buffer) => void): void {
  const piece = Buffer.alloc(PIECE_BYTES);
  for (let at = start; at < end; at += PIECE_BYTES) {
    const length = Math.min(PIECE_BYTES, end - at);
    try {
      const read = readSync(memory, piece, 0, length, at);
      see(piece.subarray(0, read));
    } catch (error) {
      // Reserved but never touched, or freed in the meantime: there is nothing in it.
      if ((error as NodeJS.ErrnoException).code !== 'EIO') throw error;
    }
  }
}

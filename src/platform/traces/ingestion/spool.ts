// Bytes of one request that are too many for memory, in a temporary file without a name: it is gone with the request, whatever
// becomes of the process.
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DomainError } from '../../../base/domain-error.ts';
import type { SpooledPayload } from '../runs/payload.ts';

const READ_BYTES = 64 * 1024;
const RETRY_MS = 10_000;
const NO_SPACE = 'The platform has no disk space for a body of this size at the moment: send it again later';

export class Spool {
  readonly #open: () => Promise<FileHandle>;
  #file: Promise<FileHandle> | undefined;
  #size = 0;

  constructor(directory: string, open: (directory: string) => Promise<FileHandle> = openUnnamed) {
    this.#open = () => open(directory);
  }

  /** Where the next bytes go. */
  get size(): number {
    return this.#size;
  }

  /** Throws a DomainError `unavailable` where the disk is full. One caller at a time. */
  async append(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      const file = await (this.#file ??= this.#open());
      for (const piece of pieces) {
        // A write may be a part of what it was asked for, for example before the disk is full.
        for (let done = 0; done < piece.length; ) {
          const { bytesWritten } = await file.write(piece, done, piece.length - done, this.#size);
          done += bytesWritten;
          this.#size += bytesWritten;
        }
      }
    } catch (error) {
      throw isFull(error) ? new DomainError('unavailable', NO_SPACE, RETRY_MS) : error;
    }
  }

  /** Of what was appended. */
  slice(from: number, size: number): SpooledPayload {
    return { size, read: () => this.#read(from, size) };
  }

  async *#read(from: number, size: number): AsyncGenerator<Uint8Array, void, undefined> {
    const file = await this.#file;
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, size));
    for (let at = 0; at < size; ) {
      const wanted = Math.min(buffer.length, size - at);
      const { bytesRead } = (await file?.read(buffer, 0, wanted, from + at)) ?? { bytesRead: 0 };
      if (bytesRead === 0) throw new Error('a spooled payload ends too early');
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Never rejects: what is left is closed with the process. */
  close(): void {
    void this.#file?.then((file) => file.close()).catch(() => undefined);
    this.#file = undefined;
  }
}

/** Others can neither find nor open it. */
async function openUnnamed(directory: string): Promise<FileHandle> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `${randomUUID()}${SUFFIX}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
  } catch (error) {
    // Another process that has just started was faster.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return file;
    await file.close();
    throw error;
  }
  return file;
}

const SUFFIX = '.spool';

/** Files of processes that were killed before they had removed the name. Where one is used, its process does not need the name. */
export async function removeLeftSpools(directory: string): Promise<void> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  for (const name of names)
    if (name.endsWith(SUFFIX))
      await unlink(join(directory, name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
}

function isFull(error: unknown): boolean {
  return FULL.has(String((error as NodeJS.ErrnoException).code));
}

/** Also of file descriptors. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE']);

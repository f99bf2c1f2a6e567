// The bytes of one file: groups of rows are taken and written as its reader asks for more, until the file has its size.
import { collectHeap } from '../../../base/memory/heap-collection.ts';
import type { RunCursor } from '../../traces/contract.ts';
import { ExportFailure } from './export-failure.ts';
import type { ExportLimits } from './export-limits.ts';
import type { GroupQueue } from './group-queue.ts';
import { createParquetFile, type FileFormat, type ParquetFile } from './parquet-file.ts';
import type { PendingUpload } from './run-progress.ts';

type Content = {
  readonly format: FileFormat;
  /** At least one; what the file does not need stays there. */
  readonly groups: GroupQueue;
  readonly limits: Pick<ExportLimits, 'fileRows' | 'fileBytes'>;
  readonly onRows: (rows: number) => void;
  /** Whether the file ends with the group that was written last. */
  readonly isEnding: () => boolean;
};

export class FileContent {
  readonly #content: Content;
  #rows = 0;
  #bytes = 0;
  #last: RunCursor | undefined;

  constructor(content: Content) {
    this.#content = content;
  }

  /** What the file has, once all of its pieces were read. */
  get target(): NonNullable<PendingUpload['target']> {
    if (this.#last === undefined) throw new Error('no group of the file was written');
    return { cursor: this.#last, rows: this.#rows, bytes: this.#bytes };
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const { format, groups, limits, isEnding } = this.#content;
    const file = await createParquetFile(format);
    while (await groups.hasMore()) {
      yield* this.#count(this.#writeGroup(file));
      if (this.#rows >= limits.fileRows || this.#bytes >= limits.fileBytes || isEnding()) break;
    }
    yield* this.#count(writeOrFail(() => file.finish(), this.target.cursor));
  }

  #writeGroup(file: ParquetFile): readonly Uint8Array[] {
    const { groups, onRows } = this.#content;
    const group = groups.take();
    const written = writeOrFail(() => file.write(group), group.last);
    this.#rows += group.rows;
    this.#last = group.last;
    onRows(group.rows);
    // The buffers of large values would wait in memory for a heap that hardly grows by them.
    if (group.bytes > LARGE_BYTES) collectHeap('major');
    return written;
  }

  *#count(pieces: readonly Uint8Array[]): Generator<Uint8Array> {
    for (const piece of pieces) {
      this.#bytes += piece.length;
      yield piece;
    }
  }
}

/** More than groups of usual runs have. */
const LARGE_BYTES = 8 * 1024 * 1024;

/** The error of the writer may name a value. */
function writeOrFail(write: () => readonly Uint8Array[], { id }: RunCursor): readonly Uint8Array[] {
  try {
    return write();
  } catch (cause) {
    const message = `The trace runs up to ${id} cannot be written as Parquet`;
    throw new ExportFailure('serialization', message, { cause });
  }
}

// The bytes of one file: groups of rows are taken and written as its reader asks for more, until the file has its size.
import { ExportFailure } from './export-failure.ts';
import type { ExportLimits } from './export-limits.ts';
import { createParquetFile, type FileFormat } from './parquet-file.ts';
import type { PendingUpload } from './run-progress.ts';
import type { RowGroup } from './row-group.ts';

type Content = {
  readonly format: FileFormat;
  readonly first: RowGroup;
  /** Those that follow; what the file does not need stays there. */
  readonly rest: AsyncGenerator<RowGroup>;
  readonly limits: Pick<ExportLimits, 'fileRows' | 'fileBytes'>;
  readonly onRows: (rows: number) => void;
};

export class FileContent {
  readonly #content: Content;
  #rows = 0;
  #bytes = 0;
  #last: RowGroup | undefined;

  constructor(content: Content) {
    this.#content = content;
  }

  /** What the file has, once all of its pieces were read. */
  get target(): NonNullable<PendingUpload['target']> {
    if (this.#last === undefined) throw new Error('no group of the file was written');
    return { cursor: this.#last.last, rows: this.#rows, bytes: this.#bytes };
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const { format, first, rest, limits, onRows } = this.#content;
    const file = await createParquetFile(format);
    for (let group: RowGroup | undefined = first; group !== undefined; ) {
      const written: RowGroup = group;
      yield* this.#count(written, () => file.write(written));
      this.#rows += written.rows;
      this.#last = written;
      onRows(written.rows);
      const isFull = this.#rows >= limits.fileRows || this.#bytes >= limits.fileBytes;
      const next: IteratorResult<RowGroup, unknown> = isFull ? DONE : await rest.next();
      group = next.done === true ? undefined : next.value;
    }
    const { cursor: last } = this.target;
    yield* this.#count({ last }, () => file.finish());
  }

  *#count({ last }: Pick<RowGroup, 'last'>, write: () => readonly Uint8Array[]): Generator<Uint8Array> {
    for (const piece of writeOrFail(write, last.id)) {
      this.#bytes += piece.length;
      yield piece;
    }
  }
}

const DONE = { done: true, value: undefined } as const;

/** The error of the writer may name a value. */
function writeOrFail(write: () => readonly Uint8Array[], id: string): readonly Uint8Array[] {
  try {
    return write();
  } catch (cause) {
    const message = `The trace runs up to ${id} cannot be written as Parquet`;
    throw new ExportFailure('serialization', message, { cause });
  }
}

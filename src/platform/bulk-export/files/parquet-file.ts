// The only file that imports hyparquet-writer, which is loaded with the first file: groups of rows to the bytes of a Parquet file, which
// nobody holds whole.
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ByteWriter } from 'hyparquet-writer';
import { type ColumnValue, toBytes } from './column-values.ts';
import type { ExportColumn } from './export-columns.ts';
import { toSchema } from './parquet-schema.ts';
import type { RowGroup } from './row-group.ts';

export type Compression = 'none' | 'gzip' | 'snappy' | 'zstd';

export type ParquetFile = {
  /** The bytes that follow those before, in pieces. */
  write(group: RowGroup): readonly Uint8Array[];
  finish(): readonly Uint8Array[];
};

export type FileFormat = {
  readonly columns: readonly ExportColumn[];
  /** Times are in UTC; otherwise they have no zone. */
  readonly hasZone: boolean;
  readonly compression: Compression;
};

const CODECS = { none: 'UNCOMPRESSED', gzip: 'GZIP', snappy: 'SNAPPY', zstd: 'ZSTD' } as const;
const PAGE_BYTES = 1024 * 1024;
/** That of other writers of Parquet. */
const ZSTD_PARAMS = { [constants.ZSTD_c_compressionLevel]: 1 };

const compressors = {
  GZIP: (bytes: Uint8Array) => gzipSync(bytes, { chunkSize: chunkSizeOf(bytes) }),
  ZSTD: (bytes: Uint8Array) =>
    zstdCompressSync(bytes, { params: ZSTD_PARAMS, chunkSize: chunkSizeOf(bytes) }),
};

/** What is allocated for the result at once: most pages are small, and there are many of them. */
function chunkSizeOf({ length }: Uint8Array): number {
  return Math.min(Math.max(length, 256), PAGE_BYTES);
}

export async function createParquetFile({ columns, hasZone, compression }: FileFormat): Promise<ParquetFile> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const writer = createPieces(ByteWriter);
  const codec = CODECS[compression];
  const schema = toSchema(columns, hasZone).map((element) => ({ ...element }));
  const file = new ParquetWriter({ writer, schema, codec, compressors, createdBy: 'sallyport' });
  return {
    write({ values, rows }) {
      const columnData = columns.map((column, at) => toSource(column, values[at] ?? []));
      void file.write({ columnData, rowGroupSize: rows, pageSize: PAGE_BYTES });
      freeBounds(file.row_groups.at(-1));
      return writer.take();
    },
    finish() {
      void file.finish();
      return writer.take();
    },
  };
}

function toSource({ name, type, isVaried }: ExportColumn, values: readonly ColumnValue[]) {
  const isText = type === 'text' || type === 'json';
  const data = isText && isVaried ? toBytes(values as readonly (string | Uint8Array | null)[]) : values;
  // A bound of a payload would be the payload, and say nothing.
  const statistics = type !== 'json' && name !== 'error';
  const encoding = isVaried ? ({ encoding: 'PLAIN' } as const) : {};
  return { name, data: data as ColumnValue[], statistics, ...encoding };
}

type Group = { readonly columns: readonly { readonly meta_data?: { readonly statistics?: Bounds } }[] };
type Bounds = { min_value?: unknown; max_value?: unknown };

/** They are parts of a buffer with all texts of the group, which would be held until the file is finished. */
function freeBounds(group: unknown): void {
  for (const { meta_data: { statistics } = {} } of (group as Group).columns) {
    if (statistics === undefined) continue;
    const { min_value: min, max_value: max } = statistics;
    if (min instanceof Uint8Array) statistics.min_value = Uint8Array.from(min);
    if (max instanceof Uint8Array) statistics.max_value = Uint8Array.from(max);
  }
}

/** Copied into a buffer with others. */
const SMALL_BYTES = 32 * 1024;

/** What a file is written into: bytes that are taken away in between, large ones without a copy. */
function createPieces(Base: typeof ByteWriter) {
  return new (class extends Base {
    #pieces: Uint8Array[] = [];

    override appendBytes(value: Uint8Array): void {
      if (value.length < SMALL_BYTES) return super.appendBytes(value);
      this.#cut();
      this.#pieces.push(value);
      this.offset += value.length;
    }

    take(): readonly Uint8Array[] {
      this.#cut();
      const taken = this.#pieces;
      this.#pieces = [];
      return taken;
    }

    #cut(): void {
      if (this.index === 0) return;
      this.#pieces.push(new Uint8Array(this.buffer.slice(0, this.index)));
      this.index = 0;
    }
  })();
}

// The only file that uses pg-copy-streams, which is loaded with the first copy: many rows in one statement, no faster than
// the database takes them. A copy is part of its transaction: an error or an abort in the middle leaves no row.
import { pipeline } from 'node:stream/promises';
import { runOnClient, type Transaction } from '../database.ts';
import type { Tables } from '../tables.ts';
import { HexText } from './hex-text.ts';

export type CopyValue =
  | string
  | number
  | bigint
  | boolean
  | Date
  | Buffer
  | null
  | { readonly json: unknown }
  /** Bytes that are too many to be held at once. */
  | StreamedBytes;

type StreamedBytes = { readonly bytes: AsyncIterable<Uint8Array> };

export type Copy<T extends keyof Tables = keyof Tables> = {
  readonly table: T;
  /** A table of the connection alone. */
  readonly isTemporary?: boolean;
  /** Of each row, in the order of its values. */
  readonly columns: readonly (keyof Tables[T] & string)[];
  readonly rows: Iterable<readonly CopyValue[]> | AsyncIterable<readonly CopyValue[]>;
  readonly signal?: AbortSignal;
};

/**
 * Returns the number of rows. The rows are read as fast as the database takes them, so that their memory is bounded; the
 * statement timeout of the transaction's pool holds for all of them together.
 */
export async function copyRows<T extends keyof Tables>(trx: Transaction, copy: Copy<T>): Promise<number> {
  const { from } = await loadCopyStreams();
  const { table, isTemporary = false, columns, rows, signal } = copy;
  const names = columns.map((name) => `"${name}"`).join(', ');
  return runOnClient(trx, async (client) => {
    const failed: { error?: unknown } = {};
    const schema = isTemporary ? 'pg_temp' : 'public';
    const target = client.query(from(`copy ${schema}."${table}" (${names}) from stdin`));
    const { stream } = client.connection;
    // A write is counted until the system has its bytes.
    const hex = new HexText(() => target.writableLength === 0 && stream.writableLength === 0);
    try {
      await pipeline(() => toPieces(rows, { failed, hex }), target, signal === undefined ? {} : { signal });
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : (failed.error ?? error);
    }
    return target.rowCount;
  });
}

/** In a bundle the package, which is CommonJS, is the default export of its chunk and has no other one. */
async function loadCopyStreams() {
  const loaded = await import('pg-copy-streams');
  return 'from' in loaded ? loaded : (loaded as { readonly default: typeof loaded }).default;
}

/** Small enough to wait for the database often, and large enough for few packets. */
const PIECE_CHARS = 64 * 1024;

type Encoding = { readonly failed: { error?: unknown }; readonly hex: HexText };

async function* toPieces(rows: Copy['rows'], { failed, hex }: Encoding): AsyncGenerator<string | Buffer> {
  try {
    let piece = '';
    for await (const row of rows) {
      if (row.some(isStreamed)) {
        if (piece !== '') yield piece;
        yield* toStreamedLine(row, hex);
        piece = '';
        continue;
      }
      piece += `${(row as readonly PlainValue[]).map(toText).join('\t')}\n`;
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = '';
    }
    if (piece !== '') yield piece;
  } catch (error) {
    failed.error = error;
    // The text of this error is sent to the database, which logs it.
    throw new Error('the rows could not be read', { cause: error });
  }
}

type PlainValue = Exclude<CopyValue, StreamedBytes>;

/** A line in pieces: it may be larger than memory. */
async function* toStreamedLine(row: readonly CopyValue[], hex: HexText): AsyncGenerator<string | Buffer> {
  let separator = '';
  for (const value of row) {
    if (isStreamed(value)) {
      yield `${separator}${BYTES}`;
      for await (const piece of value.bytes) yield hex.of(piece);
    } else yield `${separator}${toText(value)}`;
    separator = '\t';
  }
  yield '\n';
}

function isStreamed(value: CopyValue): value is StreamedBytes {
  return typeof value === 'object' && value !== null && 'bytes' in value;
}

const BYTES = '\\\\x';

/** The text format of COPY: one line for a row, `\N` for null. */
function toText(value: PlainValue): string {
  if (value === null) return '\\N';
  if (value instanceof Date) return value.toISOString();
  if (Buffer.isBuffer(value)) return `${BYTES}${value.toString('hex')}`;
  const text = typeof value === 'object' ? JSON.stringify(value.json) : String(value);
  return text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character] ?? '');
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

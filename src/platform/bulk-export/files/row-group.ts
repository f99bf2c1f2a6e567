// A group of rows of a file, column by column: what is read is added until the group has its size.
import { type PagedRun, type RunCursor, type RunPages, toCursor } from '../../traces/contract.ts';
import {
  type ColumnValue,
  type ExportedProject,
  payloadColumns,
  type PayloadColumn,
  sizeOf,
  type ValueOf,
  valueOf,
} from './column-values.ts';
import type { ExportColumn } from './export-columns.ts';
import type { ExportLimits } from './export-limits.ts';
import { createUnpacking, type Unpacked, type UnpackPayloads } from './run-payloads.ts';

export type RowGroup = {
  /** In the order of the columns. */
  readonly values: readonly (readonly ColumnValue[])[];
  readonly rows: number;
  /** Roughly, before they are compressed. */
  readonly bytes: number;
  readonly last: RunCursor;
};

type GroupLimits = Pick<ExportLimits, 'groupRows' | 'groupBytes' | 'runBytes'>;

export type GroupOptions = {
  readonly columns: readonly ExportColumn[];
  readonly project: ExportedProject;
  readonly unpack: RunPages['unpack'];
  readonly limits: GroupLimits;
};

export class RowGroups {
  readonly #columns: readonly ValueOf[];
  readonly #unpackAll: UnpackPayloads;
  readonly #limits: GroupLimits;
  #values: ColumnValue[][] = [];
  #rows = 0;
  #bytes = 0;
  #last: PagedRun | undefined;

  constructor({ columns, project, unpack, limits }: GroupOptions) {
    this.#columns = columns.map((column) => valueOf(column, project));
    const fields = payloadColumns.filter((field) => columns.some(({ name }) => name === field));
    this.#unpackAll = createUnpacking({ fields, unpack, maxBytes: limits.runBytes });
    this.#limits = limits;
    this.#clear();
  }

  /** The groups that are complete with these runs. */
  async *add(runs: readonly PagedRun[]): AsyncGenerator<RowGroup> {
    for (const run of runs) {
      const unpacked = this.#unpackAll(run);
      const row = this.#toRow(run, unpacked instanceof Promise ? await unpacked : unpacked);
      let bytes = 0;
      for (const value of row) bytes += sizeOf(value);
      if (this.#rows > 0 && this.#bytes + bytes > this.#limits.groupBytes) yield* this.end();
      for (let at = 0; at < row.length; at += 1) this.#values[at]?.push(row[at] ?? null);
      this.#rows += 1;
      this.#bytes += bytes;
      this.#last = run;
      if (this.#rows === this.#limits.groupRows) yield* this.end();
    }
  }

  /** What is left, where there is any. */
  *end(): Generator<RowGroup> {
    if (this.#last === undefined) return;
    const group = { values: this.#values, rows: this.#rows, bytes: this.#bytes, last: toCursor(this.#last) };
    this.#clear();
    yield group;
  }

  #clear(): void {
    this.#values = this.#columns.map(() => []);
    this.#rows = 0;
    this.#bytes = 0;
    this.#last = undefined;
  }

  #toRow(run: PagedRun, unpacked: Unpacked): readonly ColumnValue[] {
    const payloadOf = (field: PayloadColumn): string | Uint8Array | null => unpacked[field] ?? null;
    return this.#columns.map((value) => value(run, payloadOf));
  }
}

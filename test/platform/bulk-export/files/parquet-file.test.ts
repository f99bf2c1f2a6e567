// Any rows are read back as they were written, in any groups and by each compression.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ColumnValue } from '../../../../src/platform/bulk-export/files/column-values.ts';
import { chooseColumns } from '../../../../src/platform/bulk-export/files/export-columns.ts';
import { createParquetFile } from '../../../../src/platform/bulk-export/files/parquet-file.ts';
import { runs } from '../../../support/run-size.ts';
import { readMetadata, readRows } from './export-scene.ts';

const names = [
  'id',
  'name',
  'parent_run_id',
  'tags',
  'start_time',
  'end_time',
  'is_root',
  'total_tokens',
  'inputs',
];
const columns = chooseColumns(names);

const text = fc.string({ unit: 'binary', maxLength: 40 }).map((given) => given.toWellFormed());
const few = fc.constantFrom('', 'one', 'ä\u{1f600}', 'two');
/** As the reader has them: Dates, without microseconds. */
const time = fc.integer({ min: 0, max: 253_402_300_799_999 }).map((ms) => new Date(ms));
const optional = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: null, freq: 3 });
const row = fc.record({
  id: text,
  parent_run_id: optional(few),
  name: few,
  start_time: time,
  end_time: optional(time),
  is_root: fc.boolean(),
  inputs: optional(text),
  tags: fc.array(text, { maxLength: 3 }),
  total_tokens: optional(fc.bigInt({ min: 0n, max: 2n ** 52n })),
});
type Row = Readonly<Record<string, unknown>>;

function toValue(value: unknown): ColumnValue {
  return value instanceof Date ? BigInt(value.getTime()) * 1_000n : (value as ColumnValue);
}

async function write(groups: readonly (readonly Row[])[], compression: 'none' | 'gzip' | 'snappy' | 'zstd') {
  const file = await createParquetFile({ columns, hasZone: true, compression });
  const last = { start_time: '', id: '' };
  const pieces = groups.flatMap((rows) => {
    const values = columns.map(({ name }) => rows.map((one) => toValue(one[name])));
    return file.write({ values, rows: rows.length, bytes: 0, last }).map((piece) => Uint8Array.from(piece));
  });
  return Buffer.concat([...pieces, ...file.finish()]);
}

it('are written whatever they are', async () => {
  const groups = fc.array(fc.array(row, { minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 3 });
  const compressions = fc.constantFrom('none' as const, 'gzip' as const, 'snappy' as const, 'zstd' as const);
  await fc.assert(
    fc.asyncProperty(groups, compressions, async (given, compression) => {
      const content = await write(given, compression);
      expect(await readRows(content)).toEqual(given.flat());
      expect(readMetadata(content).row_groups.map(({ num_rows: rows }) => Number(rows))).toEqual(
        given.map((group) => group.length),
      );
    }),
    { numRuns: runs(600) },
  );
});

it('have bounds of their columns, except of payloads', async () => {
  const rows = ['b', 'a', 'c'].map((id, at) => ({
    ...{
      id,
      name: id,
      parent_run_id: null,
      tags: [],
      start_time: new Date(at),
      end_time: null,
      is_root: true,
    },
    ...{ inputs: `"${id}"`, total_tokens: BigInt(at) },
  }));
  const { row_groups: groups } = readMetadata(await write([rows], 'zstd'));
  const bounds = groups[0]?.columns.map(({ meta_data: { path_in_schema: path = [], statistics } = {} }) => [
    path[0],
    statistics?.min_value,
    statistics?.max_value,
  ]);
  expect(bounds).toContainEqual(['id', 'a', 'c']);
  expect(bounds).toContainEqual(['total_tokens', 0n, 2n]);
  expect(bounds).toContainEqual(['inputs', undefined, undefined]);
});

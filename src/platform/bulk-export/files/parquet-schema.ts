// The columns of a file as elements of a Parquet schema (Parquet format, "Logical Types"). Pure.
import type { ExportColumn } from './export-columns.ts';

/** What is used of the elements of a schema. */
export type SchemaElement = {
  readonly name: string;
  readonly type?: 'BOOLEAN' | 'INT64' | 'BYTE_ARRAY';
  readonly repetition_type?: 'REQUIRED' | 'OPTIONAL' | 'REPEATED';
  readonly num_children?: number;
  readonly converted_type?: 'UTF8' | 'LIST' | 'DECIMAL' | 'TIMESTAMP_MICROS';
  readonly logical_type?:
    | { readonly type: 'STRING' | 'LIST' }
    | { readonly type: 'DECIMAL'; readonly precision: number; readonly scale: number }
    | { readonly type: 'TIMESTAMP'; readonly isAdjustedToUTC: boolean; readonly unit: 'MICROS' };
  readonly precision?: number;
  readonly scale?: number;
};

const PRECISION = 18;
export const SCALE = 9;

/** `hasZone`: times are in UTC; otherwise they have no zone. */
export function toSchema(columns: readonly ExportColumn[], hasZone: boolean): readonly SchemaElement[] {
  const root = { name: 'schema', num_children: columns.length };
  return [root, ...columns.flatMap((column) => elementsOf(column, hasZone))];
}

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const;

function elementsOf({ name, type, isOptional }: ExportColumn, hasZone: boolean): readonly SchemaElement[] {
  const element = { name, repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED' } as const;
  switch (type) {
    case 'text':
    case 'json':
      return [{ ...element, ...TEXT }];
    case 'texts':
      return [
        { ...element, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', repetition_type: 'REQUIRED', ...TEXT },
      ];
    case 'flag':
      return [{ ...element, type: 'BOOLEAN' }];
    case 'integer':
      return [{ ...element, type: 'INT64' }];
    case 'time':
      return [{ ...element, ...timeOf(hasZone) }];
    case 'decimal':
      return [{ ...element, ...DECIMAL }];
  }
}

/** Older readers know the converted type alone, which says UTC. */
function timeOf(hasZone: boolean) {
  const logical = { type: 'TIMESTAMP', isAdjustedToUTC: hasZone, unit: 'MICROS' } as const;
  const converted = hasZone ? ({ converted_type: 'TIMESTAMP_MICROS' } as const) : {};
  return { type: 'INT64', logical_type: logical, ...converted } as const;
}

const DECIMAL = {
  type: 'INT64',
  converted_type: 'DECIMAL',
  precision: PRECISION,
  scale: SCALE,
  logical_type: { type: 'DECIMAL', precision: PRECISION, scale: SCALE },
} as const;

// What a run has in each column of a file, as the writer of files takes it: texts as strings or as their bytes, numbers and times as
// bigints. Pure.
import type { PagedRun, RunPageColumn } from '../../traces/contract.ts';
import type { ExportColumn, ExportField } from './export-columns.ts';
import { decodeJsonString } from './json-string.ts';
import { SCALE } from './parquet-schema.ts';

export type ColumnValue = string | Uint8Array | bigint | boolean | readonly string[] | null;

/** The JSON of a payload of a run by its field, or null. */
export type PayloadOf = (field: PayloadColumn) => string | Uint8Array | null;

export const payloadColumns = [
  'inputs',
  'outputs',
  'error',
  'extra',
  'events',
] as const satisfies readonly (ExportField & RunPageColumn)[];
export type PayloadColumn = (typeof payloadColumns)[number];

/** What a page of runs must have for these columns. */
export function pageColumns(columns: readonly ExportColumn[]): ReadonlySet<RunPageColumn> {
  const names = columns
    .map(({ name }) => name)
    .filter((name) => name !== 'tenant_id' && name !== 'trace_tier');
  return new Set<RunPageColumn>(names);
}

export type ExportedProject = { readonly workspaceId: string; readonly projectId: string };
export type ValueOf = (run: PagedRun, payloadOf: PayloadOf) => ColumnValue;

export function valueOf({ name, type }: ExportColumn, { workspaceId, projectId }: ExportedProject): ValueOf {
  if (name === 'tenant_id') return () => workspaceId;
  if (name === 'session_id') return () => projectId;
  if (name === 'trace_tier') return () => TRACE_TIER;
  if (name === 'error') return (_, payloadOf) => toErrorText(payloadOf(name));
  if (isPayload(name)) return (_, payloadOf) => payloadOf(name);
  switch (type) {
    case 'time':
    case 'integer':
      return (run) => toInteger(run[name]);
    case 'decimal':
      return (run) => toUnscaled(run[name]);
    default:
      return (run) => (run[name] as ColumnValue | undefined) ?? null;
  }
}

/** All runs are kept equally long. */
const TRACE_TIER = 'longlived';

function isPayload(name: ExportField): name is PayloadColumn {
  return (payloadColumns as readonly string[]).includes(name);
}

function toInteger(digits: unknown): bigint | null {
  return typeof digits === 'string' ? BigInt(digits) : null;
}

/** Decimal text with `SCALE` digits behind the point, as an integer. */
function toUnscaled(text: unknown): bigint | null {
  if (typeof text !== 'string') return null;
  const [units = '0', fraction = ''] = text.split('.');
  return BigInt(`${units}${fraction.padEnd(SCALE, '0').slice(0, SCALE)}`);
}

/** Of an error that is decoded piece by piece. */
const LONG_BYTES = 1024 * 1024;
const QUOTE = 0x22;

/** Sent as JSON: nearly always a text, which is without its quotes here. */
function toErrorText(json: string | Uint8Array | null): ColumnValue {
  if (json === null) return null;
  if (typeof json !== 'string' && json.length > LONG_BYTES)
    return json[0] === QUOTE ? decodeJsonString(json) : json;
  const text = typeof json === 'string' ? json : Buffer.from(json).toString('utf8');
  return text.startsWith('"') ? (JSON.parse(text) as string).toWellFormed() : text;
}

/** Roughly what it takes in a file before it is compressed. */
export function sizeOf(value: ColumnValue): number {
  if (value === null) return 0;
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object') return NUMBER_BYTES;
  let bytes = 0;
  for (const text of value) bytes += text.length + NUMBER_BYTES;
  return bytes;
}

const NUMBER_BYTES = 8;

/** The texts of a column as bytes in one buffer: to encode each of them by itself takes several times as long. */
export function toBytes(texts: readonly (string | Uint8Array | null)[]): readonly (Uint8Array | null)[] {
  const joined = texts.filter((text) => typeof text === 'string').join('');
  const all = Buffer.from(joined);
  const isAscii = all.length === joined.length;
  let at = 0;
  return texts.map((text) => {
    if (typeof text !== 'string') return text;
    const from = at;
    at += isAscii ? text.length : Buffer.byteLength(text);
    return all.subarray(from, at);
  });
}

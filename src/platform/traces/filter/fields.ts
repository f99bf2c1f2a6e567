// The fields that a filter may name: what their values are, and which operators they have. Pure.

/** Columns of a run, by the kind of their values. */
const COLUMNS = {
  name: 'text',
  run_type: 'text',
  status: 'text',
  error: 'text',
  thread_id: 'text',
  id: 'uuid',
  session_id: 'uuid',
  trace_id: 'uuid',
  parent_run_id: 'uuid',
  reference_example_id: 'uuid',
  start_time: 'time',
  end_time: 'time',
  latency: 'duration',
  total_tokens: 'number',
  prompt_tokens: 'number',
  completion_tokens: 'number',
  total_cost: 'number',
  prompt_cost: 'number',
  completion_cost: 'number',
  is_root: 'flag',
  tags: 'tags',
  metadata: 'json',
  inputs: 'json',
  outputs: 'json',
} as const;

/** What a run has many of, and what each of them consists of. */
const PARTS = {
  metadata_key: ['metadata', 'key'],
  metadata_value: ['metadata', 'value'],
  input_key: ['input', 'key'],
  input_value: ['input', 'value'],
  output_key: ['output', 'key'],
  output_value: ['output', 'value'],
  feedback_key: ['feedback', 'key'],
  feedback_score: ['feedback', 'score'],
  feedback_value: ['feedback', 'value'],
  feedback_source: ['feedback', 'source'],
} as const;

/** `any`: a text, a number, true or false. */
export type ValueKind = 'text' | 'uuid' | 'time' | 'duration' | 'number' | 'flag' | 'any';

type ColumnsOf<K> = {
  [N in keyof typeof COLUMNS]: (typeof COLUMNS)[N] extends K ? N : never;
}[keyof typeof COLUMNS];
/** Compared with one value. */
export type ScalarColumn = ColumnsOf<ValueKind>;
export type TextColumn = ColumnsOf<'text'>;
export type JsonColumn = ColumnsOf<'json'>;

/** What `search("text")` looks into, besides the tags. */
export const SEARCHED = {
  columns: ['name', 'error'],
  json: ['inputs', 'outputs', 'metadata'],
} as const satisfies { readonly columns: readonly TextColumn[]; readonly json: readonly JsonColumn[] };

export type Family = 'metadata' | 'input' | 'output' | 'feedback';
export type Part = 'key' | 'value' | 'score' | 'source';

export type Field =
  | { readonly kind: 'column'; readonly column: ScalarColumn; readonly values: Exclude<ValueKind, 'any'> }
  | { readonly kind: 'tags' }
  | { readonly kind: 'json'; readonly column: JsonColumn }
  | { readonly kind: 'part'; readonly family: Family; readonly part: Part; readonly values: ValueKind }
  /** Old clients ask for the first run of a trace by it. */
  | { readonly kind: 'execution_order' };

export const fieldNames: readonly string[] = [
  ...Object.keys(COLUMNS),
  ...Object.keys(PARTS),
  'execution_order',
];

export function findField(name: string): Field | undefined {
  if (name === 'execution_order') return { kind: 'execution_order' };
  if (isMember(PARTS, name)) {
    const [family, part] = PARTS[name];
    return { kind: 'part', family, part, values: valuesOf(part) };
  }
  if (!isMember(COLUMNS, name)) return undefined;
  const kind: string = COLUMNS[name];
  if (kind === 'tags') return { kind };
  if (kind === 'json') return { kind, column: name as JsonColumn };
  return { kind: 'column', column: name as ScalarColumn, values: kind as Exclude<ValueKind, 'any'> };
}

function valuesOf(part: Part): ValueKind {
  if (part === 'value') return 'any';
  return part === 'score' ? 'number' : 'text';
}

function isMember<T extends object>(table: T, name: PropertyKey): name is keyof T {
  return Object.hasOwn(table, name);
}

// The columns of the files of bulk exports, by the names of the public API, and which of them an export has selected. Pure.

/** `json`: a text that is JSON, as it was received. `decimal`: 18 digits, 9 of them behind the point. */
export type ColumnType = 'text' | 'texts' | 'time' | 'flag' | 'integer' | 'decimal' | 'json';

type Column = {
  readonly type: ColumnType;
  /** False: each run has one. True when absent. */
  readonly isOptional?: boolean;
  /** Hardly two runs have the same, or it is long: a dictionary would only cost. */
  readonly isVaried?: boolean;
};

const COLUMNS = {
  id: { type: 'text', isOptional: false, isVaried: true },
  tenant_id: { type: 'text', isOptional: false },
  session_id: { type: 'text', isOptional: false },
  trace_id: { type: 'text', isOptional: false },
  parent_run_id: { type: 'text' },
  parent_run_ids: { type: 'texts' },
  reference_example_id: { type: 'text' },
  name: { type: 'text', isOptional: false },
  run_type: { type: 'text', isOptional: false },
  start_time: { type: 'time', isOptional: false, isVaried: true },
  end_time: { type: 'time', isVaried: true },
  status: { type: 'text' },
  is_root: { type: 'flag', isOptional: false },
  dotted_order: { type: 'text', isOptional: false, isVaried: true },
  trace_tier: { type: 'text' },
  inputs: { type: 'json', isVaried: true },
  outputs: { type: 'json', isVaried: true },
  error: { type: 'text', isVaried: true },
  extra: { type: 'json', isVaried: true },
  events: { type: 'json', isVaried: true },
  tags: { type: 'texts' },
  feedback_stats: { type: 'json' },
  total_tokens: { type: 'integer' },
  prompt_tokens: { type: 'integer' },
  completion_tokens: { type: 'integer' },
  total_cost: { type: 'decimal' },
  prompt_cost: { type: 'decimal' },
  completion_cost: { type: 'decimal' },
  first_token_time: { type: 'time', isVaried: true },
} as const satisfies Readonly<Record<string, Column>>;

export type ExportField = keyof typeof COLUMNS;

/** In the order of a file. */
export const exportFields = Object.keys(COLUMNS) as readonly ExportField[];

export type ExportColumn = {
  readonly name: ExportField;
  readonly type: ColumnType;
  readonly isOptional: boolean;
  readonly isVaried: boolean;
};

/** Those that `export_fields` names, in the order of a file; all where it names none. Names that are no column are left out. */
export function chooseColumns(fields: readonly string[] | undefined): readonly ExportColumn[] {
  const wanted = fields === undefined || fields.length === 0 ? exportFields : fields;
  return exportFields.filter((name) => wanted.includes(name)).map(toColumn);
}

function toColumn(name: ExportField): ExportColumn {
  const { type, isOptional = true, isVaried = false }: Column = COLUMNS[name];
  return { name, type, isOptional, isVaried };
}

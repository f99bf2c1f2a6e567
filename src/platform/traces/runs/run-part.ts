// What one request says of one run, as a value: a POST, a PATCH, or both. Parts of a run may come in any order and more than once;
// merged they give the same run. The store does the same to what it holds (`store/run-merging.ts`). Pure.
import type { Payload } from './payload.ts';

/**
 * The fields that a part may bring, each with the columns that follow from it. A field is a whole: its columns are replaced
 * together. The bit of a field is its place in this table, and is stored: new fields go to the end.
 */
export const RUN_FIELDS = {
  name: ['name'],
  run_type: ['run_type'],
  end_time: ['end_time'],
  error: ['error', 'error_json'],
  tags: ['tags'],
  reference_example_id: ['reference_example_id'],
  inputs: ['inputs_json', 'inputs_pairs', 'inputs_text'],
  outputs: ['outputs_json', 'outputs_pairs', 'outputs_text', 'usage_in_outputs'],
  extra: ['extra_json', 'metadata', 'thread_id', 'usage_in_extra'],
  events: ['events_json', 'first_token_time'],
  serialized: ['serialized_json'],
} as const satisfies Readonly<Record<string, readonly (keyof RunValues)[]>>;

export type RunField = keyof typeof RUN_FIELDS;

export const runFieldNames = Object.keys(RUN_FIELDS) as readonly RunField[];

export function bitOf(field: RunField): number {
  return 1 << runFieldNames.indexOf(field);
}

/** Tokens are integers, costs decimal numbers as text. */
export type Usage = {
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly total_tokens?: number;
  readonly input_cost?: string;
  readonly output_cost?: string;
  readonly total_cost?: string;
};

/** Texts by the path of a value in an object; null as it is. */
export type Pairs = Readonly<Record<string, string | null>>;

/** Columns of a run, without those that say where it is. Texts are storable. Times are ISO 8601 in UTC, with microseconds. */
export type RunValues = {
  readonly name?: string;
  readonly run_type?: string;
  readonly end_time?: string;
  readonly error?: string;
  readonly error_json?: Payload;
  readonly tags?: readonly string[];
  readonly reference_example_id?: string;
  readonly inputs_json?: Payload;
  readonly inputs_pairs?: Pairs;
  readonly inputs_text?: string;
  readonly outputs_json?: Payload;
  readonly outputs_pairs?: Pairs;
  readonly outputs_text?: string;
  readonly usage_in_outputs?: Usage;
  readonly extra_json?: Payload;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly thread_id?: string;
  readonly usage_in_extra?: Usage;
  readonly events_json?: Payload;
  readonly first_token_time?: string;
  readonly serialized_json?: Payload;
};

/** Where the run is in its trace, and when it started. */
export type RunStart = {
  /** 2: of `dotted_order`, which is the same in every part of the run; 1: of a part without; 0: not known, when it was received. */
  readonly rank: 0 | 1 | 2;
  readonly start_time: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly parent_run_ids: readonly string[];
  readonly dotted_order: string;
};

/** By id or by name. */
export type RunProject = {
  /** 2: a POST names it; 1: a PATCH; 0: nobody. */
  readonly rank: 0 | 1 | 2;
} & ({ readonly id: string } | { readonly name: string });

export type RunPart<P = RunProject> = {
  readonly id: string;
  readonly project: P;
  readonly start: RunStart;
  /** Bits of the fields that it brings. */
  readonly given: number;
  /** Bits of those whose value is that of a PATCH, which replaces the one of a POST. */
  readonly patched: number;
  readonly values: RunValues;
  /** In place of values: the columns of fields that are too large to be held until they are written. */
  readonly spooled?: Readonly<Partial<Record<RunField, SpooledValues>>>;
};

/** May be read more than once. */
export type SpooledValues = { read(): Promise<RunValues> };

/** A part whose project is known to the store. */
export type PlacedPart = RunPart<{ readonly rank: number; readonly id: string }>;

/** Whether the field of `after` replaces that of `before`. */
export function replaces(
  field: RunField,
  before: Pick<RunPart, 'patched'>,
  after: Pick<RunPart, 'given' | 'patched'>,
): boolean {
  const bit = bitOf(field);
  if ((after.given & bit) === 0) return false;
  return (before.patched & bit) === 0 || (after.patched & bit) !== 0;
}

/** Of two parts of the same run, `after` is the one that came later. */
export function mergeParts<P extends { readonly rank: number }>(
  before: RunPart<P>,
  after: RunPart<P>,
): RunPart<P> {
  const values: Record<string, unknown> = { ...before.values };
  const spooled: Partial<Record<RunField, SpooledValues>> = { ...before.spooled };
  for (const field of runFieldNames) {
    if (!replaces(field, before, after)) continue;
    delete spooled[field];
    if (after.spooled?.[field] !== undefined) spooled[field] = after.spooled[field];
    for (const column of RUN_FIELDS[field]) {
      delete values[column];
      if (after.values[column] !== undefined) values[column] = after.values[column];
    }
  }
  return {
    id: before.id,
    project: after.project.rank > before.project.rank ? after.project : before.project,
    start: after.start.rank > before.start.rank ? after.start : before.start,
    given: before.given | after.given,
    patched: before.patched | after.patched,
    values: values as RunValues,
    spooled,
  };
}

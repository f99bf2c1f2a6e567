// A run as callers read it, by the public API: its fields, and which of them a caller has selected. Payloads are written beside it.
// Pure.
import { z } from '../../../base/schema.ts';
import type { FeedbackStats } from '../feedback/feedback-stats.ts';
import type { Descendants, FoundRun, PayloadField } from '../trace-store.ts';

/** A run, and what was looked up for it. */
export type ShownRun = {
  readonly run: FoundRun;
  readonly descendants?: Descendants | undefined;
  readonly feedback?: FeedbackStats | undefined;
  readonly attachments?: AttachmentUrls | undefined;
};

/** By `attachment.<name>`. */
export type AttachmentUrls = Readonly<
  Record<string, { readonly presigned_url: string; readonly mime_type: string }>
>;

const text = z.string();
const optional = text.nullable();
const uuid = z.guid();
const uuids = z.array(uuid);
const time = z.iso.datetime();
const tokens = z.int().nullable();

/** Those without a payload: their schemas, and where they are. */
const PLAIN = {
  id: [uuid, ({ run }) => run.id],
  name: [text, ({ run }) => run.name],
  run_type: [text, ({ run }) => run.run_type],
  status: [z.enum(['error', 'success', 'pending']), ({ run }) => run.status],
  start_time: [time, ({ run }) => run.start_time],
  end_time: [time.nullable(), ({ run }) => run.end_time],
  first_token_time: [time.nullable(), ({ run }) => run.first_token_time],
  session_id: [uuid, ({ run }) => run.session_id],
  trace_id: [uuid, ({ run }) => run.trace_id],
  dotted_order: [text, ({ run }) => run.dotted_order],
  parent_run_id: [uuid.nullable(), ({ run }) => run.parent_run_id],
  parent_run_ids: [uuids, ({ run }) => run.parent_run_ids],
  child_run_ids: [uuids, ({ descendants }) => descendants?.all ?? []],
  direct_child_run_ids: [uuids, ({ descendants }) => descendants?.direct ?? []],
  is_root: [z.boolean(), ({ run }) => run.is_root],
  execution_order: [z.literal(1), () => 1],
  tags: [z.array(text), ({ run }) => run.tags],
  thread_id: [optional, ({ run }) => run.thread_id],
  reference_example_id: [uuid.nullable(), ({ run }) => run.reference_example_id],
  reference_dataset_id: [z.null(), () => null],
  in_dataset: [z.boolean(), ({ run }) => run.reference_example_id !== null],
  total_tokens: [tokens, ({ run }) => toNumber(run.total_tokens)],
  prompt_tokens: [tokens, ({ run }) => toNumber(run.prompt_tokens)],
  completion_tokens: [tokens, ({ run }) => toNumber(run.completion_tokens)],
  total_cost: [optional, ({ run }) => run.total_cost],
  prompt_cost: [optional, ({ run }) => run.prompt_cost],
  completion_cost: [optional, ({ run }) => run.completion_cost],
  feedback_stats: [z.record(text, z.unknown()).nullable(), ({ feedback }) => feedback ?? null],
  s3_urls: [z.record(text, z.unknown()).nullable(), ({ attachments }) => attachments ?? null],
  inputs_preview: [optional, ({ run }) => run.inputs_preview || null],
  outputs_preview: [optional, ({ run }) => run.outputs_preview || null],
  app_path: [text, ({ run }) => `/traces/${run.session_id}/${run.trace_id}?run=${run.id}`],
  trace_tier: [z.literal('longlived'), () => 'longlived'],
  trace_upgrade: [z.boolean(), () => false],
  ttl_seconds: [z.null(), () => null],
  last_queued_at: [z.null(), () => null],
  share_token: [z.null(), () => null],
} as const satisfies Readonly<Record<string, readonly [z.ZodType, (shown: ShownRun) => unknown]>>;

type PlainField = keyof typeof PLAIN;
export type RunField = PlainField | PayloadField;

const plainFields = Object.keys(PLAIN) as readonly PlainField[];
export const payloadFields = [
  ...(['inputs', 'outputs', 'extra', 'events', 'serialized', 'error'] as const),
] satisfies readonly PayloadField[];
const runFields: readonly RunField[] = [...plainFields, ...payloadFields];

/** The id and those that are named; all where nothing is. Names that nobody knows are of newer clients. */
export function chooseFields(select: readonly string[] | null | undefined): ReadonlySet<RunField> {
  if (!select || select.length === 0) return new Set(runFields);
  return new Set(runFields.filter((field) => field === 'id' || select.includes(field)));
}

/** The text of an object without its closing brace. */
export function plainJson(shown: ShownRun, fields: ReadonlySet<RunField>): string {
  const chosen = plainFields.filter((field) => fields.has(field));
  const values = Object.fromEntries(chosen.map((field) => [field, PLAIN[field][1](shown)]));
  return JSON.stringify(values).slice(0, -1);
}

function toNumber(digits: string | null): number | null {
  return digits === null ? null : Number(digits);
}

const json = z.unknown();

/** For the document: fields that were not selected are absent. */
export const run = z
  .object({
    ...(Object.fromEntries(plainFields.map((field) => [field, PLAIN[field][0].optional()])) as Partial<
      Record<PlainField, z.ZodType>
    >),
    id: uuid,
    inputs: json.optional().describe('JSON as it was sent, as in the fields below'),
    outputs: json.optional(),
    extra: json.optional(),
    events: json.optional(),
    serialized: json.optional(),
    error: json.optional(),
  })
  .meta({ id: 'Run' });

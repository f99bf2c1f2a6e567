// The body of a request that creates a run, with all that clients may send. What a later version does is refused by name.
import { DomainError } from '../../../base/domain-error.ts';
import { isObject } from '../../../base/json/json-document.ts';
import { pathToUnstorable } from '../../../base/json/storable-text.ts';
import { withoutPrototype, z } from '../../../base/schema.ts';
import type { BodyRules } from '../../api/body/json-part.ts';
import { MULTITASK_STRATEGIES } from './run-rows.ts';

export const STREAM_MODES = [
  ...['values', 'messages', 'messages-tuple', 'updates', 'events'],
  ...['tasks', 'checkpoints', 'debug', 'custom', 'tools'],
] as const;

const object = withoutPrototype(z.record(z.string(), z.unknown()));
/** Of a column that PostgreSQL searches. */
const searched = object.superRefine((value, context) => {
  const path = pathToUnstorable(value);
  if (path !== undefined)
    context.addIssue({
      code: 'custom',
      path: [...path],
      message: 'Input must have no U+0000 and no half of a surrogate pair',
    });
});
const mode = z.enum(STREAM_MODES);
/** One, or a list: a union would report both, and neither precisely. */
const modes = z.preprocess(
  (input) => (typeof input === 'string' ? [input] : input),
  z.array(mode).max(STREAM_MODES.length),
);
const name = z.string().min(1).max(1000);
const nodes = z.preprocess(
  (input) => (input === '*' ? [input] : input),
  z
    .array(name)
    .max(1000)
    .transform((list) => (list.length === 1 && list[0] === '*' ? '*' : list)),
);
const keys = z.preprocess((input) => (typeof input === 'string' ? [input] : input), z.array(name).max(100));

const send = z.looseObject({ node: name, input: z.unknown().optional() });
const target = z.unknown().superRefine((value, context) => {
  const given = Array.isArray(value) ? value : [value];
  for (const [index, one] of given.entries()) {
    if (typeof one === 'string' || send.safeParse(one).success) continue;
    const path = Array.isArray(value) ? [index] : [];
    context.addIssue({
      code: 'custom',
      path,
      message: 'Input must be the name of a node, or an object with node and input',
    });
  }
});
const command = z.strictObject({
  resume: z.unknown().optional(),
  update: z.unknown().optional(),
  goto: target.optional(),
  // The client that stands for a graph in another graph marks its commands.
  lg_name: z.literal('Command').optional(),
});
const checkpoint = z.looseObject({
  thread_id: z.string().nullish(),
  checkpoint_id: z.string().nullish(),
  checkpoint_ns: z.string().nullish(),
  checkpoint_map: object.nullish(),
});

/** A year: what is due later is a schedule. */
const MAX_AFTER_SECONDS = 366 * 24 * 3600;

export const runBody = z.object({
  assistant_id: z.string().min(1).max(1000),
  input: z.unknown().optional(),
  command: command.nullish(),
  config: object.nullish(),
  context: z.unknown().optional(),
  metadata: searched.nullish(),
  stream_mode: modes.nullish(),
  stream_subgraphs: z.boolean().nullish(),
  stream_resumable: z.boolean().nullish(),
  interrupt_before: nodes.nullish(),
  interrupt_after: nodes.nullish(),
  checkpoint: checkpoint.nullish(),
  checkpoint_id: z.string().min(1).max(1000).nullish(),
  webhook: z.unknown().optional(),
  multitask_strategy: z.enum(MULTITASK_STRATEGIES).nullish(),
  on_completion: z.enum(['delete', 'keep']).nullish(),
  on_disconnect: z.enum(['cancel', 'continue']).nullish(),
  after_seconds: z.number().min(0).max(MAX_AFTER_SECONDS).nullish(),
  if_not_exists: z.enum(['create', 'reject']).nullish(),
  checkpoint_during: z.boolean().nullish(),
  durability: z.enum(['sync', 'async', 'exit']).nullish(),
  feedback_keys: keys.nullish(),
  langsmith_tracer: z
    .looseObject({ project_name: z.string().nullish(), example_id: z.string().nullish() })
    .nullish(),
});

type Parsed = z.output<typeof runBody>;
/** `null` counts as absent. */
export type RunBody = {
  readonly [Name in keyof Parsed]: Name extends 'config' | 'metadata'
    ? Readonly<Record<string, unknown>> | null | undefined
    : Parsed[Name];
};

/** Values of a graph may hold any text, and more of everything than documents of ours. */
export const RUN_BODY_RULES: BodyRules = {
  ...{ isStorable: false, mayRepeatNames: true, maxDepth: 512, maxNames: 2_000_000, maxValues: 5_000_000 },
  maxBytes: 20 * 1024 * 1024,
};

/** Throws DomainError `not_supported` for what a later version does. */
export function requireSupported({ webhook }: RunBody): void {
  if (webhook === undefined || webhook === null) return;
  throw new DomainError('not_supported', 'webhook: this version calls no webhooks; leave the field out');
}

/** Whether a run without an input goes on where its thread is. */
export function hasCommand(body: RunBody): boolean {
  return isObject(body.command);
}
